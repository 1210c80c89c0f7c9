// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/seeing/render"
)

func newGetRolloutsCommand() *cobra.Command {
	return newGetListedCommand(listed{
		plural: "rollouts", singular: "rollout",
		short: "List the ExtensionRollouts, and how many Clusters have moved",
		long: "List the ExtensionRollouts of a gateway: for how many Clusters both versions answer alike (EQUAL) or\n" +
			"differently (DIFFERENT), how many have the candidate (MOVED), and about how many it does not answer\n" +
			"(FAILING). Clusters that have not been compared are not counted. \"hookgate describe rollout NAME\" shows\n" +
			"what differs for each Cluster, and what that does to its Machines.",
		inWide: "the messages of all",
		list:   func(g *status.Gateway) (any, []string, int) { return g.Rollouts, rolloutNames(g), g.MissedRollouts },
		table:  render.Rollouts,
	})
}

// rolloutNames returns the names of the ExtensionRollouts of a gateway.
func rolloutNames(g *status.Gateway) []string {
	names := make([]string, len(g.Rollouts))
	for i := range g.Rollouts {
		names[i] = g.Rollouts[i].Name
	}
	return names
}
