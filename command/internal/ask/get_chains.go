// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/seeing/render"
)

func newGetChainsCommand() *cobra.Command {
	return newGetListedCommand(listed{
		plural: "chains", singular: "chain",
		short: "List the HandlerChains, and whether they are ready",
		long: "List the HandlerChains of a gateway: the hook that each answers, whether it can be called, and why not.\n" +
			"In a cluster, these are the verdicts of the process that is asked; the leader writes its own into the\n" +
			"condition Ready, which kubectl get handlerchains shows.",
		inWide: "the names of the steps and the messages of all",
		list:   func(g *status.Gateway) (any, []string, int) { return g.Chains, chainNames(g), g.MissedChains },
		table:  render.Chains,
	})
}

// chainNames returns the names of the chains of a gateway.
func chainNames(g *status.Gateway) []string {
	names := make([]string, len(g.Chains))
	for i := range g.Chains {
		names[i] = g.Chains[i].Name
	}
	return names
}
