// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/seeing/render"
)

func newGetPoliciesCommand() *cobra.Command {
	return newGetListedCommand(listed{
		plural: "policies", singular: "policy",
		short: "List the ExtensionPolicies, and whether they are accepted",
		long: "List the ExtensionPolicies of a gateway: what each is for, whether it is accepted, and why not. In a\n" +
			"cluster, these are the verdicts of the process that is asked; the leader writes its own into the\n" +
			"condition Accepted, which kubectl get extensionpolicies shows.",
		inWide: "the number of handlers that have the policy",
		list: func(g *status.Gateway) (any, []string, int) {
			names := make([]string, len(g.Policies))
			for i := range g.Policies {
				names[i] = g.Policies[i].Name
			}
			return g.Policies, names, g.MissedPolicies
		},
		table: render.Policies,
	})
}
