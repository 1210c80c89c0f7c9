// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/seeing/render"
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

func newGetJobsCommand() *cobra.Command {
	return newGetListedCommand(listed{
		plural: "jobs", singular: "job",
		short: "List the HookJobs, and whether they are in effect",
		long: "List the HookJobs of a gateway: the hook that each answers, whether it is in effect, and why not.\n" +
			"These are the verdicts of the process that is asked; the leader writes its own into the condition Ready,\n" +
			"which kubectl get hookjobs shows. \"hookgate get holds\" lists the Clusters that wait for a Job, and\n" +
			"kubectl get jobs -l hookgate.dev/hook-job=NAME the Jobs themselves.",
		inWide: "what is in effect for each and the messages of all",
		list:   func(g *status.Gateway) (any, []string, int) { return g.Jobs, jobNames(g), g.MissedJobs },
		table:  render.Jobs,
	})
}

// ruleNames returns the names of the HookRules of a gateway, and jobNames those of its HookJobs.
func ruleNames(g *status.Gateway) []string { return localNames(g.Rules) }
func jobNames(g *status.Gateway) []string  { return localNames(g.Jobs) }

func localNames(all []status.Local) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}
