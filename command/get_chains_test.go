// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// chainsStatus is gatewayStatus with chains: one that is ready, and one that is not.
func chainsStatus() *status.Gateway {
	g := gatewayStatus()
	handler := &g.Extensions[0].Handlers[0]
	handler.Chains, handler.State = []string{"gates"}, status.Slow
	g.Holds = g.Holds[:1]
	g.Chains = []status.Chain{{
		Name: "gates", Hook: "BeforeClusterUpgrade", OfferedAs: "beforeclusterupgrade", Ready: true, Reason: "Ready", Message: "Calls go to 1 handler",
		Calls: status.Calls{Total: 5, Failures: 1, P50: .001, P99: .002},
		Steps: []status.ChainStep{
			{
				Handler: "gate.acme", Registered: true, Settings: []string{"mode", "zone"},
				Details: &status.HookedHandler{Handler: *handler, Extension: "acme"},
			},
			{Handler: "more.none", Optional: true},
		},
	}, {
		Name: "updates-of-machines", Hook: "CanUpdateMachineSet", OfferedAs: "updates-of-machines", Reason: "SeveralOffered", Message: "Calls fail\x1b[2J", OnPartialCoverage: "Block",
		Steps: []status.ChainStep{{Handler: "disk.other", Problem: `no handler "disk.other" is registered`, Allow: []string{"/machineSet/spec", "/x/y"}}},
	}}
	g.MissedChains = 3
	return g
}

// TestGetChains lists the chains in the status of a gateway in each format. The table fits into a terminal, but for
// messages.
func TestGetChains(t *testing.T) {
	s := serveStatus(t, chainsStatus)
	const more = "There are 3 more, which the gateway does not list.\n"
	for format, want := range map[string][][]string{
		"table": {
			{"NAME", "HOOK", "READY", "REASON", "STEPS"},
			{"gates", "BeforeClusterUpgrade", "True", "Ready", "2"},
			{"updates-of-machines", "CanUpdateMachineSet", "False", "SeveralOffered", "1"},
			nil,
			{"NAME", "MESSAGE"},
			{"updates-of-machines", `Calls fail\x1b[2J`},
		},
		"wide": {
			{"NAME", "HOOK", "READY", "REASON", "OFFERED AS", "COVERAGE", "STEPS", "MESSAGE"},
			{"gates", "BeforeClusterUpgrade", "True", "Ready", "beforeclusterupgrade", "-", "gate.acme, more.none", "Calls go to 1 handler"},
			{"updates-of-machines", "CanUpdateMachineSet", "False", "SeveralOffered", "updates-of-machines", "Block", "disk.other", `Calls fail\x1b[2J`},
		},
		"name": {{"gates"}, {"updates-of-machines"}},
	} {
		got := hookgate(t, "", "get", "chains", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, columns(got.out)); diff != "" || got.code != cmdline.ExitDone || got.errOut != more {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.code, got.errOut, diff)
		}
		for line := range strings.Lines(got.out) {
			if format == "table" && len(line) > 80 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
	none := serveStatus(t, gatewayStatus)
	for format, want := range map[string]string{"table": "", "json": "{\n  \"chains\": []\n}\n"} {
		got := hookgate(t, "", "get", "chain", "--diagnostics", none.URL, "-o", format)
		if got.out != want || got.errOut != none.URL+" has no chains.\n" || got.code != cmdline.ExitDone {
			t.Errorf("without any, %s: %+v", format, got)
		}
	}
}

// TestDescribeChain describes a chain with its steps, however its kind is written.
func TestDescribeChain(t *testing.T) {
	s := serveStatus(t, chainsStatus)
	columnsOf := []string{"STEP", "HANDLER", "STATE", "TIMEOUT", "FAILURE POLICY", "OPTIONAL", "OBJECTS", "POLICY", "CALLS", "FAILED", "P50", "P99"}
	for name, want := range map[string][][]string{
		"gates": {
			{"Name:", "gates"},
			{"Hook:", "BeforeClusterUpgrade"},
			{"Offered as:", "beforeclusterupgrade"},
			{"Ready:", "True, Ready"},
			{"Message:", "Calls go to 1 handler"},
			{"Calls:", "5 in 5m, 1 failed, p50 1ms, p99 2ms"},
			nil,
			columnsOf,
			{"1", "gate.acme", "Slow", "10s", "Ignore", "false", "v1beta1", "first (conditional)", "100", "7", "1.2ms", "1.2s"},
			{"2", "more.none", "-", "-", "-", "true", "-", "-", "-", "-", "-", "-"},
			nil,
			{"STEP", "NOTE"},
			{"1", "adds the settings mode, zone"},
			{"2", "it is not registered, and passed over"},
			nil,
			{"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE"},
			{"team-a", "c", "BeforeClusterUpgrade", "gate.acme", "60m", "60s ago", "retry after 30s", "not yet"},
		},
		"updates-of-machines": {
			{"Name:", "updates-of-machines"},
			{"Hook:", "CanUpdateMachineSet"},
			{"Offered as:", "updates-of-machines"},
			{"Ready:", "False, SeveralOffered"},
			{"Message:", `Calls fail\x1b[2J`},
			{"Partial coverage:", "Block"},
			{"Calls:", "none in 5m"},
			nil,
			columnsOf,
			{"1", "disk.other", "-", "-", "-", "false", "-", "-", "-", "-", "-", "-"},
			nil,
			{"STEP", "NOTE"},
			{"1", `no handler "disk.other" is registered`},
			{"1", "may change only /machineSet/spec, /x/y"},
		},
	} {
		for _, args := range []string{"chain " + name, "chain/" + name, "chains/" + name} {
			got := hookgate(t, "", append(strings.Fields("describe "+args), "--diagnostics", s.URL)...)
			rows := columns(got.out)
			if diff := cmp.Diff(want, rows[:min(len(want), len(rows))]); diff != "" || got.code != cmdline.ExitDone {
				t.Errorf("%s: exit status %d, %s; -want +got\n%s", args, got.code, got.errOut, diff)
			}
		}
	}
	got := hookgate(t, "", "describe", "chain", "nope", "--diagnostics", s.URL)
	if want := "HTTP 404: there is no such chain\nSee \"hookgate get chains\"."; got.code != cmdline.ExitFailed || !strings.Contains(got.errOut, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
	if got := completions(t, "describe", "chain", "--diagnostics", s.URL, "g"); !cmp.Equal(got, []string{"gates"}) {
		t.Errorf("completed %v", got)
	}
	got = hookgate(t, "", "describe", "acme", "--diagnostics", s.URL)
	if rows := columns(got.out); !cmp.Equal(rows[17], []string{"gate.acme", "step of gates"}) {
		t.Errorf("the step does not name its chain: %q", rows)
	}
}

// TestGetHandlersWithChains lists chains among the handlers, with the worst state of their steps.
func TestGetHandlersWithChains(t *testing.T) {
	s := serveStatus(t, chainsStatus)
	got := hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", "wide")
	want := [][]string{
		{"OFFERED AS", "HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY", "CALLS", "FAILED", "P50", "P99", "CHAINS", "EXTENSION"},
		{"beforeclusterupgrade", "gate.acme", "BeforeClusterUpgrade", "Slow", "10s", "Ignore", "5", "v1beta1", "first (conditional)", "100", "7", "1.2ms", "1.2s", "gates", "acme"},
		{"beforeclusterupgrade", "gates", "BeforeClusterUpgrade", "Slow", "10s", "Fail", "-", "as sent", "-", "5", "1", "1ms", "2ms", "-", "-"},
		{"updates-of-machines", "updates-of-machines", "CanUpdateMachineSet", "Down", "0s", "Fail", "-", "as sent", "-", "0", "0", "-", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, columns(got.out)); diff != "" || got.code != cmdline.ExitDone {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.code, got.errOut, diff)
	}
}
