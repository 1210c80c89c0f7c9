// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// jobStatus is the status of a gateway with a HookJob, for which a Cluster waits.
func jobStatus() *status.Gateway {
	now := time.Now()
	return &status.Gateway{
		Now: now, Window: 300,
		Jobs: []status.InProcess{{
			Name: "backup", Hook: "BeforeClusterUpgrade", Ready: true, Reason: "Ready", Message: "Answers BeforeClusterUpgrade as handler job.backup",
			Handler: &status.Handler{
				Name: "job.backup", Kind: "HookJob", OfferedAs: "beforeclusterupgrade", Hook: "BeforeClusterUpgrade", APIVersion: "v1alpha1", Timeout: 10,
				FailurePolicy: "Fail", State: status.Ready, Calls: status.Calls{Total: 40, P50: .001, P99: .002},
			},
		}},
		Holds: []status.Hold{{
			Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "job.backup", Message: "Job hookgate-jobs/backup-1 runs", RetryAfter: 30,
			Since: now.Add(-time.Hour), Last: now,
		}},
	}
}

// TestJobsAreShown lists HookJobs and describes one, with the Cluster that waits for its Job and for how long.
func TestJobsAreShown(t *testing.T) {
	s := commandtest.ServeStatus(t, jobStatus)
	ask := func(args ...string) [][]string {
		t.Helper()
		got := commandtest.Hookgate(t, "", append(args, "--diagnostics", s.URL)...)
		if got.Code != cmdline.ExitDone || got.ErrOut != "" {
			t.Errorf("%v: exit status %d: %s", args, got.Code, got.ErrOut)
		}
		return commandtest.Columns(got.Out)
	}
	if diff := cmp.Diff([][]string{
		{"NAME", "HOOK", "READY", "REASON", "CALLS", "FAILED"}, {"backup", "BeforeClusterUpgrade", "True", "Ready", "40", "0"},
	}, ask("get", "jobs")); diff != "" {
		t.Errorf("get jobs (-want +got):\n%s", diff)
	}
	hold := []string{"team-a", "c", "BeforeClusterUpgrade", "job.backup", "60m", "0s ago", "retry after 30s", "Job hookgate-jobs/backup-1 runs"}
	for _, args := range [][]string{{"describe", "job", "backup"}, {"describe", "jobs/backup"}, {"get", "holds"}} {
		rows := ask(args...)
		if diff := cmp.Diff(hold, rows[len(rows)-1]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
}

// TestJobUsage is about mistakes in the command line.
func TestJobUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"say what to do with Jobs: rerun or forget":                          nil,
		`want the name of one HookJob, see "hookgate get jobs"; got 0 names`: {"rerun"},
		`--cluster: want NAMESPACE/NAME, got ""`:                             {"forget", "a"},
		`--cluster: want NAMESPACE/NAME, got "a"`:                            {"rerun", "a", "--cluster", "a"},
		`--cluster: want NAMESPACE/NAME, got "a/b/c"`:                        {"rerun", "a", "--cluster", "a/b/c"},
	} {
		if got := commandtest.Hookgate(t, "", append([]string{"job"}, args...)...); got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%q: exit status %d: %s, want %s", args, got.Code, got.ErrOut, want)
		}
	}
}
