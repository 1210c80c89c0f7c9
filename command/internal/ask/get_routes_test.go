// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// routesOfProd returns a Cluster with a hook whose handlers have turns, one of which is a chain, and a hook whose
// callers name the handler.
func routesOfProd() *status.Cluster {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	order := int32(5)
	handler := func(name string, turn int) status.HookedHandler {
		return status.HookedHandler{
			Handler: status.Handler{Name: name, OfferedAs: "x", State: status.Up, Timeout: 10, FailurePolicy: "Fail"},
			Turn:    turn, Extension: "acme",
		}
	}
	first, rule, chain := handler("gate.acme", 1), handler("rule.small", 2), handler("checks", 2)
	first.Order, first.Policy, first.State = &order, "first", status.Down
	rule.Conditional = true
	chain.Extension, chain.Steps = "", []status.HookedHandler{handler("a.acme", 1), handler("b.acme", 2)}
	return &status.Cluster{
		Now: now, Namespace: "team-a", Name: "prod",
		Holds: []status.Hold{{
			Namespace: "team-a", Cluster: "prod", Hook: "BeforeClusterUpgrade", Handler: "gate.acme", Message: "not yet",
			RetryAfter: 30, Since: now.Add(-time.Hour), Last: now.Add(-time.Minute),
		}},
		Hooks: []status.Hook{
			{Name: "BeforeClusterUpgrade", Called: status.CalledAll, Handlers: []status.HookedHandler{first, rule, chain}},
			{Name: "GeneratePatches", Called: status.CalledOne, Handlers: []status.HookedHandler{handler("patch.acme", 0)}},
		},
	}
}

// serveRoutes serves a Cluster, and the status of a gateway that does not know the parameter, as older ones do, to those
// who ask for old/one.
func serveRoutes(t *testing.T, c *status.Cluster) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("cluster") {
		case c.Namespace + "/" + c.Name:
			_ = json.NewEncoder(w).Encode(c)
		case "", "old/one":
			_ = json.NewEncoder(w).Encode(commandtest.GatewayStatus())
		default:
			http.Error(w, `no call about a Cluster "x/y" has reached this process: ask the other replicas`, http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestGetRoutes(t *testing.T) {
	s := serveRoutes(t, routesOfProd())
	for format, want := range map[string][][]string{
		"table": {
			{"HOOK", "TURN", "HANDLER", "STATE", "TIMEOUT", "FAILURE POLICY", "POLICY"},
			{"BeforeClusterUpgrade", "1", "gate.acme", "Down", "10s", "Fail", "first"},
			{"BeforeClusterUpgrade", "2", "rule.small", "Up", "10s", "Fail", "(conditional)"},
			{"BeforeClusterUpgrade", "2", "checks", "Up", "10s", "Fail", "-"},
			{"BeforeClusterUpgrade", "2.1", "a.acme", "Up", "10s", "Fail", "-"},
			{"BeforeClusterUpgrade", "2.2", "b.acme", "Up", "10s", "Fail", "-"},
			{"GeneratePatches", "-", "patch.acme", "Up", "10s", "Fail", "-"},
			nil,
			{"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE"},
			{"team-a", "prod", "BeforeClusterUpgrade", "gate.acme", "60m", "60s ago", "retry after 30s", "not yet"},
		},
		"name": {{"gate.acme"}, {"rule.small"}, {"checks"}, {"a.acme"}, {"b.acme"}, {"patch.acme"}},
	} {
		got := commandtest.Hookgate(t, "", "get", "routes", "team-a/prod", "--diagnostics", s.URL, "-o", format)
		if diff := cmp.Diff(want, commandtest.Columns(got.Out)); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != "" {
			t.Errorf("%s: exit status %d, %s; -want +got\n%s", format, got.Code, got.ErrOut, diff)
		}
	}
	wide := commandtest.Columns(commandtest.Hookgate(t, "", "get", "route", "team-a/prod", "--diagnostics", s.URL, "-o", "wide").Out)
	want := []string{
		"BeforeClusterUpgrade", "1", "gate.acme", "Down", "10s", "Fail", "first", "5", "as sent", "x", "0", "0", "-", "-", "acme",
	}
	if diff := cmp.Diff(want, wide[1]); diff != "" {
		t.Errorf("wide: -want +got\n%s", diff)
	}
	got := commandtest.Hookgate(t, "", "get", "routes", "team-a/prod", "--diagnostics", s.URL, "-o", "json")
	if diff := cmp.Diff(routesOfProd(), commandtest.DecodeInto(t, got.Out, &status.Cluster{})); diff != "" {
		t.Errorf("JSON is not what the gateway serves: -want +got\n%s", diff)
	}
	if got := commandtest.Completions(t, "get", "routes", "--diagnostics", s.URL, "team-a"); !cmp.Equal(got, []string{"team-a/c"}) {
		t.Errorf("completed %v", got)
	}
}

func TestGetRoutesErrors(t *testing.T) {
	s := serveRoutes(t, routesOfProd())
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Unknown":     {[]string{"x/y"}, cmdline.ExitFailed, `HTTP 404: no call about a Cluster "x/y" has reached this process: ask the other replicas`},
		"Older":       {[]string{"old/one"}, cmdline.ExitFailed, "does not report which handlers answer the hooks of a Cluster"},
		"NoNamespace": {[]string{"prod"}, cmdline.ExitUsage, `want NAMESPACE/CLUSTER, such as default/my-cluster, got "prod"`},
		"TwoSlashes":  {[]string{"a/b/c"}, cmdline.ExitUsage, "want NAMESPACE/CLUSTER"},
		"Nothing":     {nil, cmdline.ExitUsage, "want one NAMESPACE/CLUSTER, got 0 arguments"},
		"BadFormat":   {[]string{"x/y", "-o", "xml"}, cmdline.ExitUsage, `--output "xml": want table, wide, name, yaml or json`},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"get", "routes", "--diagnostics", s.URL}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
			t.Errorf("%s: exit status %d, %s; want %q", name, got.Code, got.ErrOut, tt.want)
		}
	}
	none := serveRoutes(t, &status.Cluster{Namespace: "a", Name: "b"})
	got := commandtest.Hookgate(t, "", "get", "routes", "a/b", "--diagnostics", none.URL)
	if got.Out != "" || got.ErrOut != none.URL+" has no handlers for a/b.\n" || got.Code != cmdline.ExitDone {
		t.Errorf("without handlers: %+v", got)
	}
}
