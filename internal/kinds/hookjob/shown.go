// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds"
)

// listed is where a status has the HookJobs.
var listed = kinds.Locals("jobs", func(g *status.Gateway) (*[]status.InProcess, *int) { return &g.Jobs, &g.MissedJobs })

// shownKind returns what people see of the kind.
func shownKind() kinds.Shown {
	shown := kinds.ShownLocal("job", "jobs", listed)
	shown.Short = "List the HookJobs, and whether they are in effect"
	shown.Long = "List the HookJobs of a gateway: which hook each answers, whether the HookJob is in effect, and if\n" +
		"not, why. The list shows the verdicts of the replica that is queried; \"kubectl get hookjobs\" shows\n" +
		"the leader's verdicts, from the condition Ready. \"hookgate get holds\" lists the Clusters that wait\n" +
		"for a Job, and \"kubectl get jobs -l hookgate.dev/hook-job=NAME\" lists the Jobs themselves."
	shown.Ready = kinds.ReadyMetric{
		Name: "hookgate_hook_job_ready", Label: "hook_job",
		Help: "Whether a HookJob is in effect (1) or not (0). The label `hook_job` is the name of the HookJob. The " +
			"label `hook` is empty if the HookJob was never valid.",
	}
	return shown
}
