// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/ask"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// handlersStatus returns the status of a gateway with a hook of three handlers, and a handler on its own.
func handlersStatus() *status.Gateway {
	g := commandtest.GatewayStatus()
	first := int32(1)
	g.Extensions[1].Handlers = []status.Handler{
		{Name: "patch.other", OfferedAs: "patch--other", Hook: "GeneratePatches", APIVersion: hook.APIVersion, Timeout: .25, FailurePolicy: "Fail", State: status.Unknown},
		{Name: "a.other", OfferedAs: "beforeclusterupgrade", Hook: "BeforeClusterUpgrade", APIVersion: hook.APIVersion, Timeout: 10, FailurePolicy: "Fail", State: status.Up},
		{Name: "z.other", OfferedAs: "beforeclusterupgrade", Hook: "BeforeClusterUpgrade", APIVersion: hook.APIVersion, Timeout: 30, FailurePolicy: "Fail", Order: &first, Policy: "p", State: status.Up},
	}
	return g
}

func TestGetHandlersOfAGateway(t *testing.T) {
	s := commandtest.ServeStatus(t, handlersStatus)
	const before = "beforeclusterupgrade"
	head := []string{"OFFERED AS", "HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY"}
	rows := [][]string{
		{before, "z.other", "BeforeClusterUpgrade", "Up", "30s", "Fail", "1", "as sent", "p"},
		{before, "gate.acme", "BeforeClusterUpgrade", "Down", "10s", "Ignore", "5", "v1beta1", "first (conditional)"},
		{before, "a.other", "BeforeClusterUpgrade", "Up", "10s", "Fail", "-", "as sent", "-"},
		{"patch--other", "patch.other", "GeneratePatches", "Unknown", "250ms", "Fail", "-", "as sent", "-"},
	}
	wide := [][]string{slices.Concat(head, []string{"CALLS", "FAILED", "P50", "P99", "CHAINS", "EXTENSION"})}
	for i, row := range rows {
		calls := []string{"0", "0", "-", "-", "-", "other"}
		if i == 1 {
			calls = []string{"100", "7", "1.2ms", "1.2s", "-", "acme"}
		}
		wide = append(wide, slices.Concat(row, calls))
	}
	for format, want := range map[string][][]string{
		"table": append([][]string{head}, rows...), "wide": wide,
		"name": {{"z.other"}, {"gate.acme"}, {"a.other"}, {"patch.other"}},
	} {
		got := commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != "" {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
	}

	var list struct{ Handlers []status.HookedHandler }
	got := commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || len(list.Handlers) != 4 || list.Handlers[1].Extension != "acme" ||
		cmp.Diff(handlersStatus().Extensions[0].Handlers[0], list.Handlers[1].Handler) != "" {
		t.Errorf("JSON: %v\n%s", err, got.Out)
	}
	if got = commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", "yaml"); !strings.Contains(got.Out, "offeredAs: patch--other\n") {
		t.Errorf("YAML: %s", got.Out)
	}
}

func TestGetHandlersOfAGatewayWithoutAny(t *testing.T) {
	s := commandtest.ServeStatus(t, func() *status.Gateway { return &status.Gateway{Now: time.Now()} })
	for format, want := range map[string]string{"table": "", "wide": "", "name": "", "json": "{\n  \"handlers\": []\n}\n", "yaml": "handlers: []\n"} {
		got := commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL, "-o", format)
		if got.Out != want || got.ErrOut != s.URL+" has no handlers.\n" || got.Code != cmdline.ExitDone {
			t.Errorf("%s: %+v, want %q", format, got, want)
		}
	}
}

func TestGetHandlersOfAnExtensionThatIsDown(t *testing.T) {
	s := commandtest.ServeStatus(t, func() *status.Gateway {
		return &status.Gateway{Now: time.Now(), Extensions: []status.Extension{{Name: "acme"}}}
	})
	got := commandtest.Hookgate(t, "", "get", "handlers", "--diagnostics", s.URL)
	if want := s.URL + " has no handlers; \"hookgate get extensions\" shows why.\n"; got.ErrOut != want || got.Code != cmdline.ExitDone {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestGetHandlersAsksServer(t *testing.T) {
	for flags, want := range map[string]bool{
		"": false, "output timeout": false, "diagnostics": false, "diagnostics ca token-file": false,
		"server": true, "server ca": true, "ca": true, "cert key": true, "token": true, "token-file": true,
	} {
		changed := func(flag string) bool { return slices.Contains(strings.Fields(flags), flag) }
		if got := ask.AsksServer(changed, false); got != want {
			t.Errorf("%q: %t, want %t", flags, got, want)
		}
		if got, want := ask.AsksServer(changed, true), strings.HasPrefix(flags, "server"); got != want {
			t.Errorf("%q, in a cluster: %t, want %t", flags, got, want)
		}
	}
}

// TestGetHandlersAsksOne checks which address is asked, by the one that the error names.
func TestGetHandlersAsksOne(t *testing.T) {
	ca := commandtest.NewFakeServer(t, nil).CAFile
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--ca", ca, "--diagnostics", "https://127.0.0.1:1"}, cmdline.ExitFailed, "gateway https://127.0.0.1:1"},
		{[]string{"--server", "https://127.0.0.1:1"}, cmdline.ExitFailed, "https://127.0.0.1:1"},
		{[]string{"--server", "https://127.0.0.1:1", "--diagnostics", "http://127.0.0.1:1"}, cmdline.ExitUsage, "handlers are listed from a server or from a diagnostics address; give only one of these flags"},
		{[]string{"--server", "https://127.0.0.1:1", "-o", "wide"}, cmdline.ExitFailed, "https://127.0.0.1:1"},
		{[]string{"-o", "xml"}, cmdline.ExitUsage, "want table, wide, name, yaml or json"},
		{[]string{"--timeout", "0s"}, cmdline.ExitUsage, "--timeout: want more than 0"},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"get", "handlers"}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
			t.Errorf("%v: got %+v, want %d, %q", tt.args, got, tt.code, tt.want)
		}
	}
}
