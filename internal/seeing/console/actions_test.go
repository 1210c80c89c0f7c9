// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/status"
)

// seenWith returns a page, and its policy, as a browser gets it whose requests have the header.
func seenWith(t *testing.T, h http.Handler, target, header string) (body, policy string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if header != "" {
		r.Header.Set(status.ActionsHeader, header)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String(), w.Header().Get("Content-Security-Policy")
}

// Through the dashboard, there are buttons for what it can do. Without it, and for the rest, there are commands.
func TestActions(t *testing.T) {
	g := &gateways{extensions: []status.Extension{acme()}, rollouts: []status.Rollout{{
		Name: "acme", Stable: "acme", Candidate: "acme-v7", Ready: true, Moved: 1, Variables: &status.RolloutCluster{State: "Different"},
		Clusters: []status.RolloutCluster{{Namespace: "team-a", Cluster: "prod", State: "Different"}, {Namespace: "team-a", Cluster: "dev", State: "Moved"}},
	}}, holds: []status.Hold{
		{Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "gate.acme"},
		{Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "rule.hours"},
		{Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "job.backup"},
		{Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "other.acme", Kind: "Failure"},
		{Namespace: "team-a", Cluster: "x'; reboot", Hook: "BeforeClusterUpgrade", Handler: "gate.acme"},
	}}
	h := newPage(g)
	commands := []string{
		"hookgate rollout approve acme --variables", "hookgate rollout promote acme", "hookgate rollout pause acme", "hookgate rollout undo acme",
		"hookgate rollout approve acme --cluster team-a/prod", "hookgate rollout undo acme --cluster team-a/dev",
		"hookgate lift gate.acme --hook BeforeClusterUpgrade --cluster team-a/c", "hookgate lift rule.hours --hook BeforeClusterUpgrade --cluster team-a/c",
		`hookgate lift gate.acme --hook BeforeClusterUpgrade --cluster &#39;team-a/x&#39;\&#39;&#39;; reboot&#39;`,
	}
	body, _ := seenWith(t, h, "/", "")
	for _, want := range commands {
		if !strings.Contains(body, "<code>"+want+"</code>") {
			t.Errorf("lacks %s:\n%s", want, body)
		}
	}
	if n := strings.Count(body, "<code>hookgate lift "); n != 3 {
		t.Errorf("%d holds can be lifted, want 3: not those of Jobs, and no failures", n)
	}
	if strings.Contains(body, `class="act" method="get"`) {
		t.Errorf("a button without a dashboard:\n%s", body)
	}

	body, csp := seenWith(t, h, "/", "4711 approve promote pause undo lift")
	for _, want := range []string{
		`<form class="act" method="get" action="http://127.0.0.1:4711/approve"><input type="hidden" name="rollout" value="acme"><input type="hidden" name="cluster" value="team-a/prod">`,
		`type="submit" aria-label="Approve Cluster team-a/prod of rollout acme">Approve</button>`,
		`<form class="act" method="get" action="http://127.0.0.1:4711/lift"><input type="hidden" name="handler" value="gate.acme"><input type="hidden" name="hook" value="BeforeClusterUpgrade"><input type="hidden" name="cluster" value="team-a/c">`,
		`aria-label="Lift the hold of Cluster team-a/c by gate.acme">Lift</button>`, `name="variables" value="true"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("lacks %s:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<code>hookgate rollout") || csp != policy+" http://127.0.0.1:4711" {
		t.Errorf("policy %s\n%s", csp, body)
	}
	if body, _ = seenWith(t, h, "/extensions/acme", "4711 record"); !strings.Contains(body, `action="http://127.0.0.1:4711/record"><input type="hidden" name="handler" value="gate.acme">`) ||
		!strings.Contains(body, "<code>hookgate lift") {
		t.Errorf("one action alone:\n%s", body)
	}
	if body, _ = seenWith(t, h, "/clusters/team-a/c", "4711 explain"); !strings.Contains(body, `action="http://127.0.0.1:4711/explain"><input type="hidden" name="cluster" value="team-a/c">`) {
		t.Errorf("the page of a Cluster:\n%s", body)
	}
}

// Nothing of a header but a port reaches the page, and no form is taken.
func TestActionsHeaderIsANumber(t *testing.T) {
	h := newPage(&gateways{extensions: []status.Extension{acme()}, holds: []status.Hold{{Namespace: "n", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "gate.acme"}}})
	for _, header := range []string{"0 lift", "65536 lift", "-1 lift", "https://evil.example lift", "1; script-src * lift", "80@evil.example lift", strings.Repeat("1 ", 1000) + "lift"} {
		body, csp := seenWith(t, h, "/", header)
		if strings.Contains(body, `class="act" method="get"`) || csp != policy && csp != policy+" http://127.0.0.1:1" || strings.Contains(body, "evil") {
			t.Errorf("%q: policy %s", header, csp)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/lift", nil)
	r.Header.Set(status.ActionsHeader, "4711 lift")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a form: %d", w.Code)
	}
}
