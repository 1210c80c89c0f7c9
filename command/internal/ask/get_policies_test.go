// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestGetPolicies lists the policies in the status of a gateway in each format.
func TestGetPolicies(t *testing.T) {
	s := commandtest.ServeStatus(t, func() *status.Gateway {
		g := commandtest.GatewayStatus()
		g.Policies = []status.Policy{
			{Name: "first", Target: "acme/gate", Accepted: true, Reason: "Accepted", Message: "In effect"},
			{Name: "typo", Reason: "Invalid", Message: "undefined field\x1b[2J"},
		}
		g.MissedPolicies = 3
		return g
	})
	const more = "The list is incomplete: the gateway has 3 more.\n"
	for format, want := range map[string][][]string{
		"table": {
			{"NAME", "TARGET", "ACCEPTED", "REASON", "MESSAGE"},
			{"first", "acme/gate", "True", "Accepted", "In effect"},
			{"typo", "-", "False", "Invalid", `undefined field\x1b[2J`},
		},
		"wide": {
			{"NAME", "TARGET", "ACCEPTED", "REASON", "HANDLERS", "MESSAGE"},
			{"first", "acme/gate", "True", "Accepted", "1", "In effect"},
			{"typo", "-", "False", "Invalid", "0", `undefined field\x1b[2J`},
		},
		"name": {{"first"}, {"typo"}},
	} {
		got := commandtest.Hookgate(t, "", "get", "policies", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != more {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
	}
	got := commandtest.Hookgate(t, "", "get", "policies", "--diagnostics", s.URL, "-o", "yaml")
	if !strings.Contains(got.Out, "policies:\n  - name: first\n    target: acme/gate\n    accepted: true\n") {
		t.Errorf("YAML: %s", got.Out)
	}

	none := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	for format, want := range map[string]string{"table": "", "json": "{\n  \"policies\": []\n}\n"} {
		got := commandtest.Hookgate(t, "", "get", "policies", "--diagnostics", none.URL, "-o", format)
		if got.Out != want || got.ErrOut != none.URL+" has no ExtensionPolicies.\n" || got.Code != cmdline.ExitDone {
			t.Errorf("without any, %s: %+v", format, got)
		}
	}
}
