// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestGetChains lists the chains in the status of a gateway in each format. The table fits into a terminal, but for
// messages.
func TestGetChains(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.ChainsStatus)
	const more = "The list is incomplete: the gateway has 3 more.\n"
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
		got := commandtest.Hookgate(t, "", "get", "chains", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != more {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
		for line := range strings.Lines(got.Out) {
			if format == "table" && len(line) > 80 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
	none := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	for format, want := range map[string]string{"table": "", "json": "{\n  \"chains\": []\n}\n"} {
		got := commandtest.Hookgate(t, "", "get", "chain", "--diagnostics", none.URL, "-o", format)
		if got.Out != want || got.ErrOut != none.URL+" has no HandlerChains.\n" || got.Code != cmdline.ExitDone {
			t.Errorf("without any, %s: %+v", format, got)
		}
	}
}

// TestDescribeChain describes a chain with its steps, however its kind is written.
func TestDescribeChain(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.ChainsStatus)
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
			{"1", "while it holds, the steps after it are not called"},
			{"2", "it is not registered, so it is skipped"},
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
			got := commandtest.Hookgate(t, "", append(strings.Fields("describe "+args), "--diagnostics", s.URL)...)
			rows := commandtest.Columns(got.Out)
			if diff := cmp.Diff(want, rows[:min(len(want), len(rows))]); diff != "" || got.Code != cmdline.ExitDone {
				t.Errorf("%s: exit status %d, %s; -want +got\n%s", args, got.Code, got.ErrOut, diff)
			}
		}
	}
	got := commandtest.Hookgate(t, "", "describe", "chain", "nope", "--diagnostics", s.URL)
	if want := "HTTP 404: there is no such chain\nSee \"hookgate get chains\"."; got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
	if got := commandtest.Completions(t, "describe", "chain", "--diagnostics", s.URL, "g"); !cmp.Equal(got, []string{"gates"}) {
		t.Errorf("completed %v", got)
	}
	got = commandtest.Hookgate(t, "", "describe", "acme", "--diagnostics", s.URL)
	if rows := commandtest.Columns(got.Out); !cmp.Equal(rows[17], []string{"gate.acme", "step of gates"}) {
		t.Errorf("the step does not name its chain: %q", rows)
	}
}

// TestGetHandlersWithChains lists chains among the handlers, with the worst state of their steps.
func TestGetHandlersWithChains(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.ChainsStatus)
	got := commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", "wide")
	want := [][]string{
		{"OFFERED AS", "HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY", "CALLS", "FAILED", "P50", "P99", "CHAINS", "EXTENSION"},
		{"beforeclusterupgrade", "gate.acme", "BeforeClusterUpgrade", "Slow", "10s", "Ignore", "5", "v1beta1", "first (conditional)", "100", "7", "1.2ms", "1.2s", "gates", "acme"},
		{"beforeclusterupgrade", "gates", "BeforeClusterUpgrade", "Slow", "10s", "Fail", "-", "as sent", "-", "5", "1", "1ms", "2ms", "-", "-"},
		{"updates-of-machines", "updates-of-machines", "CanUpdateMachineSet", "Down", "0s", "Fail", "-", "as sent", "-", "0", "0", "-", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.Code, got.ErrOut, diff)
	}
}
