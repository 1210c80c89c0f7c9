// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/render"
	"github.com/hookgate/hookgate/internal/status"
)

func newGetRulesCommand() *cobra.Command {
	return newGetListedCommand(listed{
		plural: "rules", singular: "rule",
		short: "List the HookRules, and whether they are in effect",
		long: "List the HookRules of a gateway: the hook that each answers, whether it is in effect, and why not.\n" +
			"In a cluster, these are the verdicts of the process that is asked; the leader writes its own into the\n" +
			"condition Ready, which kubectl get hookrules shows.",
		inWide: "what is in effect for each and the messages of all",
		list:   func(g *status.Gateway) (any, []string, int) { return g.Rules, ruleNames(g), g.MissedRules },
		table:  render.Rules,
	})
}

// ruleNames returns the names of the rules of a gateway.
func ruleNames(g *status.Gateway) []string {
	names := make([]string, len(g.Rules))
	for i := range g.Rules {
		names[i] = g.Rules[i].Name
	}
	return names
}
