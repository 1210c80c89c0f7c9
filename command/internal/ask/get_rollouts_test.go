// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// rolloutsStatus is GatewayStatus with two rollouts: one that goes on, and one that is aborted. The extension of
// GatewayStatus is stable in the first.
func rolloutsStatus() *status.Gateway {
	g := commandtest.GatewayStatus()
	g.Holds = nil
	g.Extensions[0].Rollout = &status.RolloutMember{Name: "patches", As: "stable"}
	since := g.Now.Add(-time.Hour)
	replaces := "replaces 3 Machines of MachineDeployment md-0"
	g.Rollouts = []status.Rollout{{
		Name: "patches", Stable: "acme", Candidate: "acme-v7", Ready: true, Reason: "Ready", Message: "Clusters may move",
		Equal: 30, Different: 2, Moved: 1, Failing: 1,
		Handlers: []status.Handler{{
			Name: "gate.patches", Kind: "ExtensionRollout", OfferedAs: "beforeclusterupgrade", Hook: "BeforeClusterUpgrade",
			Timeout: 10, FailurePolicy: "Fail", State: status.Up, Order: g.Extensions[0].Handlers[0].Order,
		}},
		Variables: &status.RolloutCluster{
			State: "Different", Since: since, Message: "the answers differ", Differences: []status.RolloutDifference{{
				Handler: "vars", Path: "/variables/0/required", Stable: "false", Candidate: "true",
			}},
		},
		Clusters: []status.RolloutCluster{{
			Namespace: "team-a", Cluster: "prod-1", State: "Different", Since: since, Message: "the answers differ",
			Failure: "patch: cannot connect\x1b[2J",
			Differences: []status.RolloutDifference{
				{Handler: "patch", Object: "KubeadmConfigTemplate team-a/x", Path: "/spec/a", Stable: `"a"`, Candidate: `"b"`, Machines: replaces},
				{Handler: "patch", Object: "KubeadmConfigTemplate team-a/x", Path: "/spec/b", Candidate: `1`, Machines: replaces},
			},
			OmittedDifferences: 4,
		}, {
			Namespace: "team-b", Cluster: "dev", State: "Moved", Since: since, Message: "the answers are equal",
		}},
		MissedClusters: 7,
	}, {
		Name: "stopped", Stable: "s", Candidate: "c", Reason: "MemberMissing", Message: "c is not known", Paused: true,
		Aborted: "more than 5 % of the last calls to c have failed",
	}}
	g.MissedRollouts = 2
	return g
}

// TestGetRollouts lists the rollouts in the status of a gateway, and what keeps each from going on.
func TestGetRollouts(t *testing.T) {
	s := commandtest.ServeStatus(t, rolloutsStatus)
	columnsOf := []string{"NAME", "STABLE", "CANDIDATE", "READY", "EQUAL", "DIFFERENT", "MOVED", "FAILING", "MESSAGE"}
	stopped := []string{
		"stopped", "s", "c", "False", "0", "0", "0", "0", "c is not known; aborted, no more Clusters move: more than 5 % " +
			"of the last calls to c have failed; paused, no more Clusters move",
	}
	first := []string{"patches", "acme", "acme-v7", "True", "30", "2", "1", "1", "the candidate cannot be promoted, because variables differ"}
	for format, want := range map[string][][]string{
		"table": {columnsOf, first, stopped},
		"name":  {{"patches"}, {"stopped"}},
	} {
		got := commandtest.Hookgate(t, "", "get", "rollouts", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || !strings.HasPrefix(got.ErrOut, "The list is incomplete: the gateway has 2 more.") {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
	}
}

// TestDescribeRollout shows of each Cluster what differs, with both values, and what that does to its Machines, once.
func TestDescribeRollout(t *testing.T) {
	s := commandtest.ServeStatus(t, rolloutsStatus)
	got := commandtest.Hookgate(t, "", "describe", "rollout", "patches", "--diagnostics", s.URL)
	want := [][]string{
		{"Name:", "patches"},
		{"Stable:", "acme"},
		{"Candidate:", "acme-v7"},
		{"Ready:", "True, Ready"},
		{"Message:", "the candidate cannot be promoted, because variables differ"},
		{"Clusters:", "30 equal, 2 different, 1 moved"},
		{"Failing:", "the last call to acme-v7 failed for 1 Cluster"},
		nil,
		{"HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY", "CALLS", "FAILED", "P50", "P99"},
		{"gate.patches", "BeforeClusterUpgrade", "Up", "10s", "Fail", "5", "as sent", "-", "0", "0", "-", "-"},
		nil,
		{"Calls about no Cluster, such as those of DiscoverVariables:", "different for 60m, the answers differ"},
		{"vars:", "/variables/0/required false → true"},
		nil,
		{"Cluster team-a/prod-1:", "different for 60m, the answers differ"},
		{"Fails:", `patch: cannot connect\x1b[2J`},
		{"Machines:", "replaces 3 Machines of MachineDeployment md-0"},
		{"patch:", `KubeadmConfigTemplate team-a/x /spec/a "a" → "b"`},
		{"patch:", `KubeadmConfigTemplate team-a/x /spec/b (none) → 1`},
		{"-", "and 4 more"},
		nil,
		{"Cluster team-b/dev:", "moved for 60m, the answers are equal"},
		nil,
		{"and 7 more Clusters, which the gateway does not list"},
	}
	if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.Code, got.ErrOut, diff)
	}
	if got := commandtest.Completions(t, "describe", "rollout", "--diagnostics", s.URL, "p"); !cmp.Equal(got, []string{"patches"}) {
		t.Errorf("completed %v", got)
	}
}

// TestMembersOfRollouts holds that lists say what an extension is to a rollout, and that the rollout's handlers stand
// before those of its members.
func TestMembersOfRollouts(t *testing.T) {
	s := commandtest.ServeStatus(t, rolloutsStatus)
	rows := commandtest.Columns(commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", "wide").Out)
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[1]+": "+row[len(row)-1])
	}
	want := []string{"gate.patches: ExtensionRollout patches", "gate.acme: acme (stable of ExtensionRollout patches)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handlers: -want +got\n%s", diff)
	}
	if out := commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", s.URL).Out; !strings.Contains(out, "stable of ExtensionRollout patches; cannot connect") {
		t.Errorf("extensions:\n%s", out)
	}
}
