// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds"
)

// listed is where a status has the rules.
var listed = kinds.Locals("rules", func(g *status.Gateway) (*[]status.InProcess, *int) {
	return &g.Rules, &g.MissedRules
})

// shownKind returns what people see of the kind.
func shownKind() kinds.Shown {
	shown := kinds.ShownLocal("rule", "rules", listed)
	shown.Short = "List the HookRules, and whether they are in effect"
	shown.Long = "List the HookRules of a gateway: which hook each answers, whether the HookRule is in effect, and if\n" +
		"not, why. In a cluster, the list shows the verdicts of the replica that is queried;\n" +
		"\"kubectl get hookrules\" shows the leader's verdicts, from the condition Ready."
	shown.Ready = kinds.ReadyMetric{
		Name: "hookgate_hook_rule_ready", Label: "rule",
		Help: "Whether a HookRule is in effect (1) or not (0). The label `rule` is the name of the HookRule. The " +
			"label `hook` is empty if the HookRule was never valid.",
	}
	return shown
}
