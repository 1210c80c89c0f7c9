// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/command/internal/ask"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

func TestGetExtensionsOfAGateway(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	const message = "cannot connect: connection refused; its last known 1 handler is still served; " +
		"called at the previous URL https://acme.example since 2026-01-02T02:04:05Z: discovery at https://new.example has not succeeded yet"
	tests := map[string][][]string{
		"table": {
			{"NAME", "STATE", "SINCE", "PROTOCOL", "HANDLERS", "CALLS", "FAILED", "P99", "MESSAGE"},
			{"acme", "Down", "90s", "REST", "1", "100", "7", "1.2s", message},
			{"other", "Up", "60m", "gRPC", "0", "0", "0", "-", "-"},
		},
		"wide": {
			{"NAME", "STATE", "SINCE", "PROTOCOL", "HANDLERS", "CALLS", "FAILED", "P99", "P50", "IN FLIGHT", "CIRCUIT", "HEALTH CHECK", "URL", "MESSAGE"},
			{"acme", "Down", "90s", "REST", "1", "100", "7", "1.2s", "1.2ms", "3", "half_open", "-", "https://acme.example", message},
			{"other", "Up", "60m", "gRPC", "0", "0", "0", "-", "-", "0", "closed", "off", "unix:///run/x", "-"},
		},
		"name": {{"acme"}, {"other"}},
	}
	for format, want := range tests {
		got := commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != "" {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
	}
	got := commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", s.URL, "-o", "json")
	var g status.Gateway
	if err := json.Unmarshal([]byte(got.Out), &g); err != nil || cmp.Diff(commandtest.GatewayStatus(), &g) != "" {
		t.Errorf("JSON is not the status: %v\n%s", err, cmp.Diff(commandtest.GatewayStatus(), &g))
	}
	if got = commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", s.URL, "-o", "yaml"); !strings.Contains(got.Out, "state: Down\n") {
		t.Errorf("YAML: %s", got.Out)
	}
	none := commandtest.ServeStatus(t, func() *status.Gateway { return &status.Gateway{Now: time.Now()} })
	if got = commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", none.URL); got.Out != "" || got.ErrOut != none.URL+" has no extensions.\n" {
		t.Errorf("without any: %+v", got)
	}
}

// TestOneExtension checks the ways in which users of kubectl name one object.
func TestOneExtension(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	for _, args := range []string{
		"get extensions acme", "get extension acme", "get ext acme", "describe acme", "describe extension acme", "describe extensions/acme", "describe ext/acme",
	} {
		got := commandtest.Hookgate(t, "", append(strings.Fields(args), "--diagnostics", s.URL)...)
		if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, "acme") || strings.Contains(got.Out, "other") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	for _, args := range []string{"get extensions acm", "describe acm", "describe handler/acme"} {
		if got := commandtest.Hookgate(t, "", append(strings.Fields(args), "--diagnostics", s.URL)...); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, "no such extension") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	for _, alias := range []string{"handler", "hold"} {
		if got := commandtest.Hookgate(t, "", "get", alias, "--diagnostics", s.URL); got.Code != cmdline.ExitDone {
			t.Errorf("get %s: %+v", alias, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	s := commandtest.ServeStatus(t, func() *status.Gateway {
		g := commandtest.GatewayStatus()
		g.Holds = g.Holds[:1]
		return g
	})
	got := commandtest.Hookgate(t, "", "describe", "acme", "--diagnostics", s.URL)
	want := [][]string{
		{"Name:", "acme"},
		{"State:", "Down for 90s"},
		{"Reason:", "cannot connect: connection refused"},
		{"Last answer:", "2m ago"},
		{"URL:", "https://acme.example"},
		{"Protocol:", "REST"},
		{"Pending:", "called at the previous URL https://acme.example since 2026-01-02T02:04:05Z: discovery at https://new.example has not succeeded yet"},
		{"Namespaces:", "those with tier=gold"},
		{"Discovery:", "failing for 60s: connection refused; its last known 1 handler is still served"},
		{"Server circuit:", "half-open, because calls failed with Unreachable, for 60s, opened 2 times"},
		{"Calls now:", "3 in flight (limit 256), 1 waiting (limit 1024)"},
		{"Calls:", "100 in 5m, 7 failed, p50 1.2ms, p99 1.2s, 1 near the timeout"},
		nil,
		{"HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY", "CALLS", "FAILED", "P50", "P99"},
		{"gate.acme", "BeforeClusterUpgrade", "Down", "10s", "Ignore", "5", "v1beta1", "first (conditional)", "100", "7", "1.2ms", "1.2s"},
		nil,
		{"HANDLER", "NOTE"},
		{"gate.acme", `"gate" is taken`},
		{"gate.acme", "deprecated since v2; use v3"},
		{"gate.acme", "conversion loses spec.gone"},
		nil,
		{"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE"},
		{"team-a", "c", "BeforeClusterUpgrade", "gate.acme", "60m", "60s ago", "retry after 30s", "not yet"},
		nil,
		{"FAILURE", "TIMES", "HANDLER", "KIND", "TOOK", "CALL ID", "MESSAGE"},
		{"1s ago", "4", "gate.acme", "Unreachable (ignored)", "500ms", "CALL", `refused\x1b[2J`},
	}
	if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.Code, got.ErrOut, diff)
	}
	if got = commandtest.Hookgate(t, "", "describe", "acme", "--diagnostics", s.URL, "-o", "yaml"); !strings.Contains(got.Out, "callId: CALL\n") {
		t.Errorf("YAML: %s", got.Out)
	}
}

// Scripts read an object, so that members can be added.
func TestGetHoldsIsAnObject(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	for args, want := range map[string]int{"": 2, "d": 0} {
		got := commandtest.Hookgate(t, "", append([]string{"get", "holds", "--diagnostics", s.URL, "-o", "json"}, strings.Fields(args)...)...)
		var list struct{ Holds []status.Hold }
		if err := json.Unmarshal([]byte(got.Out), &list); err != nil || len(list.Holds) != want || list.Holds == nil {
			t.Errorf("%q: got %d, want %d: %v\n%s", args, len(list.Holds), want, err, got.Out)
		}
	}
}

func TestGetHolds(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	for name, tt := range map[string]struct {
		args []string
		want [][]string
	}{
		"All":       {nil, [][]string{{"team-a", "retry after 30s", "not yet"}, {"team-b", "Failure", "no"}}},
		"Namespace": {[]string{"-n", "team-b"}, [][]string{{"team-b", "Failure", "no"}}},
		"Cluster":   {[]string{"-n", "team-a", "c"}, [][]string{{"team-a", "retry after 30s", "not yet"}}},
		"Path":      {[]string{"team-a/c"}, [][]string{{"team-a", "retry after 30s", "not yet"}}},
		"Other":     {[]string{"d"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"get", "holds", "--diagnostics", s.URL}, tt.args...)...)
			var rows [][]string
			for _, row := range commandtest.Columns(got.Out) {
				if row[0] != "NAMESPACE" {
					rows = append(rows, []string{row[0], row[6], row[7]})
				}
			}
			if diff := cmp.Diff(tt.want, rows); diff != "" || got.Code != cmdline.ExitDone {
				t.Errorf("exit status %d, -want +got\n%s", got.Code, diff)
			}
			if none := "No Cluster of that name or namespace waits for a handler of " + s.URL + ".\n"; (got.ErrOut == none) != (tt.want == nil) {
				t.Errorf("errors: %q", got.ErrOut)
			}
		})
	}
}

// TestWatchListsChanges lists again when a state changes, and not when only counts do. It outlasts a gateway that
// restarts, and says so once.
func TestWatchListsChanges(t *testing.T) {
	var looks atomic.Int64
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := commandtest.ServeStatus(t, func() *status.Gateway {
		g := commandtest.GatewayStatus()
		n := looks.Add(1)
		if g.Extensions[0].Calls.Total = uint64(n); n >= 3 {
			g.Extensions[0].State = status.Up
		}
		switch {
		case n >= 5 && n < 9:
			g.Now = time.Time{} // is no status
		case n >= 9:
			g.Extensions[0].State = status.Failing
		}
		if n == 12 {
			interrupt()
		}
		return g
	})
	var out, errOut strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	err := ask.WatchExtensions(cmd, s.URL, time.Millisecond)
	var states []string
	for _, row := range commandtest.Columns(out.String()) {
		if len(row) > 0 && row[0] == "acme" {
			states = append(states, row[1])
		}
	}
	if diff := cmp.Diff([]string{"Down", "Up", "Failing"}, states); diff != "" || err != nil {
		t.Errorf("error %v; -want +got\n%s", err, diff)
	}
	if text := errOut.String(); strings.Count(text, "Trying again until the gateway answers.") != 1 || strings.Count(text, "answers again.") != 1 {
		t.Errorf("errors: %s", text)
	}
}

func TestStatusErrors(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer silent.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"status":"Failure","message":"want /\u003chook\u003e"}`)
	}))
	defer front.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"NoName":       {[]string{"describe"}, cmdline.ExitUsage, "say what to describe: the name of an extension, or rollout, rule, job or chain and a name"},
		"NoExtension":  {[]string{"describe", "nope", "--diagnostics", s.URL}, cmdline.ExitFailed, "HTTP 404: there is no such extension\nSee \"hookgate get extensions\"."},
		"Front":        {[]string{"get", "extensions", "--diagnostics", front.URL}, cmdline.ExitFailed, "HTTP 404: want /<hook>\nIs this the diagnostics address of a gateway?"},
		"NoStatus":     {[]string{"get", "holds", "--diagnostics", secure.URL}, cmdline.ExitFailed, "Use --ca FILE"},
		"NoGateway":    {[]string{"get", "extensions", "--diagnostics", "http://127.0.0.1:1"}, cmdline.ExitFailed, "gateway http://127.0.0.1:1: connection refused\nIs the gateway running"},
		"NoTLS":        {[]string{"get", "extensions", "--diagnostics", "https" + strings.TrimPrefix(s.URL, "http")}, cmdline.ExitFailed, "the server has no TLS\nWithout TLS, use --diagnostics " + s.URL + "."},
		"NeedsTLS":     {[]string{"get", "extensions", "--diagnostics", "http" + strings.TrimPrefix(secure.URL, "https")}, cmdline.ExitFailed, "an HTTPS server.\nWith TLS, use --diagnostics " + secure.URL + "."},
		"NoBody":       {[]string{"get", "extensions", "--diagnostics", silent.URL}, cmdline.ExitFailed, "HTTP 404: the answer has no body\nIs this"},
		"NoURL":        {[]string{"get", "extensions", "--diagnostics", "127.0.0.1:8443"}, cmdline.ExitUsage, `--diagnostics "127.0.0.1:8443": must begin with http://, https://; want http://HOST:PORT`},
		"Path":         {[]string{"get", "extensions", "--diagnostics", s.URL + "/x"}, cmdline.ExitUsage, "want http://HOST:PORT"},
		"Secret":       {[]string{"get", "extensions", "--diagnostics", "ftp://u:secret@h"}, cmdline.ExitUsage, "***@h"},
		"TokenInClear": {[]string{"describe", "x", "--diagnostics", "http://gateway.example:8443", "--token", "t"}, cmdline.ExitUsage, "need TLS"},
		"Token":        {[]string{"describe", "acme", "--diagnostics", s.URL, "--token-file", token}, cmdline.ExitFailed, "HTTP 403: who are you\nUse --token-file"},
		"Format":       {[]string{"get", "extensions", "--diagnostics", s.URL, "-o", "xml"}, cmdline.ExitUsage, `--output "xml": want table, wide, name, yaml or json`},
		"Both":         {[]string{"get", "extensions", "--diagnostics", s.URL, "--kubeconfig", "x"}, cmdline.ExitUsage, "give only one of these flags, or use --gateway"},
		"WatchCluster": {[]string{"get", "extensions", "--kubeconfig", "x", "--watch"}, cmdline.ExitUsage, "use kubectl get"},
		"TwoClusters":  {[]string{"get", "holds", "a", "b"}, cmdline.ExitUsage, "got 2 names"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", tt.args...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || strings.Contains(got.ErrOut, "secret") {
				t.Errorf("exit status %d, want %d; %s\nwant %s", got.Code, tt.code, got.ErrOut, tt.want)
			}
		})
	}
}
