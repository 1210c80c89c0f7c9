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

// TestGetPlaces lists the Clusters that wait, and those that have what they wait for.
func TestGetPlaces(t *testing.T) {
	var now time.Time
	placed := func(holds ...status.Hold) func() *status.Gateway {
		return func() *status.Gateway {
			g := commandtest.GatewayStatus()
			now = g.Now
			g.Holds = holds
			g.Rules = []status.InProcess{{Name: "none"}, {
				Name: "two", Hook: "BeforeClusterUpgrade", MissedPlaces: 3, Places: []status.Place{
					{Namespace: "n", Cluster: "a", Per: "north", Since: now.Add(-time.Minute)},
					{Namespace: "m", Cluster: "b", Per: "south", Since: now.Add(-time.Hour)},
				},
			}}
			return g
		}
	}
	placed()()
	hold := status.Hold{
		Namespace: "n", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "rule.two", Since: now.Add(-time.Minute),
		Last: now, RetryAfter: 30, Message: "waits",
	}
	waits := [][]string{
		{"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE"},
		{"n", "c", "BeforeClusterUpgrade", "rule.two", "60s", "0s ago", "retry after 30s", "waits"},
	}
	places := [][]string{
		{"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "PER"},
		{"n", "a", "BeforeClusterUpgrade", "rule.two", "60s", "north"},
		{"m", "b", "BeforeClusterUpgrade", "rule.two", "60m", "south"},
	}
	const more = "The list is incomplete: the gateway had no room for 3 more places of HookRule two.\n"
	for name, tt := range map[string]struct {
		holds  []status.Hold
		args   []string
		want   [][]string
		errOut string
	}{
		"Both":        {[]status.Hold{hold}, nil, append(append(waits, nil), places...), more},
		"PlacesAlone": {nil, nil, places, more + "No Cluster waits for a handler of URL.\n"},
		"OneCluster":  {[]status.Hold{hold}, []string{"-n", "n", "c"}, waits, more},
	} {
		s := commandtest.ServeStatus(t, placed(tt.holds...))
		got := commandtest.Hookgate(t, "", append([]string{"get", "holds", "--diagnostics", s.URL}, tt.args...)...)
		if diff := cmp.Diff(tt.want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || strings.ReplaceAll(got.ErrOut, s.URL, "URL") != tt.errOut {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", name, got.Code, got.ErrOut, diff)
		}
	}
}
