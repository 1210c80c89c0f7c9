// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
)

// gateways is a Source whose extensions tests set.
type gateways struct {
	extensions []status.Extension
	holds      []status.Hold
	policies   []status.Policy
	chains     []status.Chain
	rules      []status.InProcess
	jobs       []status.InProcess
	rollouts   []status.Rollout
	seen       []status.SeenCluster
	state      atomic.Pointer[status.State] // of all extensions, if it is set
	history    func(extension, handler string, of activity.Range) *status.History
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (g *gateways) Gateway() *status.Gateway {
	s := &status.Gateway{Version: "v1.2.3", Now: now, Holds: g.holds, Notices: []status.Notice{{Name: "certificate/serving", Text: "ends tomorrow"}, {Name: "manifests", Text: "1 error", Details: []string{"d/a.yaml:3: <b>wrong</b>"}}}}
	s.Policies, s.Chains, s.Rules, s.Jobs = g.policies, g.chains, g.rules, g.jobs
	s.Rollouts = g.rollouts
	for _, x := range g.extensions {
		if state := g.state.Load(); state != nil {
			x.State = *state
		}
		s.Extensions = append(s.Extensions, x)
	}
	return s
}

func (g *gateways) Extension(name string) (*status.Gateway, bool) {
	s := g.Gateway()
	for _, x := range s.Extensions {
		if x.Name == name {
			s.Extensions = []status.Extension{x}
			return s, true
		}
	}
	return s, false
}

func (g *gateways) Cluster(namespace, name string) (*status.Cluster, bool) {
	order, last := int32(7), now.Add(-time.Minute)
	of := func(turn int, handler string) status.HookedHandler {
		return status.HookedHandler{Extension: "acme", Turn: turn, Handler: status.Handler{Name: handler, State: status.Up}}
	}
	first := of(1, "gate.acme")
	first.Order, first.Conditional, first.Chains = &order, true, []string{"updates"}
	chain := status.HookedHandler{Turn: 2, Handler: status.Handler{Name: "gates", Kind: "HandlerChain", State: status.Failing, Error: "<b>no</b>"}}
	chain.Steps = []status.HookedHandler{of(1, "a.acme"), of(2, "b.acme")}
	c := &status.Cluster{Namespace: namespace, Name: name, Holds: g.holds, Hooks: []status.Hook{
		{Name: "BeforeClusterUpgrade", Called: status.CalledAll, Handlers: []status.HookedHandler{first, chain, of(2, "other.acme")}},
		{Name: "GeneratePatches", Called: status.CalledOne, Handlers: []status.HookedHandler{of(0, "p.acme"), of(0, "q.acme")}},
	}}
	if namespace == "unknown" {
		return c, false
	}
	c.LastCall = &last
	return c, true
}

func (g *gateways) Clusters(part string, most int) (found []status.SeenCluster, more int) {
	last := now.Add(-time.Minute)
	for _, c := range g.seen {
		switch {
		case !strings.Contains(c.Namespace+"/"+c.Name, part):
		case len(found) == most:
			more++
		default:
			c.LastCall = &last
			found = append(found, c)
		}
	}
	return found, more
}

func (g *gateways) History(extension, handler string, of activity.Range) *status.History {
	if g.history != nil {
		return g.history(extension, handler, of)
	}
	return &status.History{Now: now, Start: now.Add(-of.Length), Started: now, Step: of.Step, Points: make([]status.HistoryPoint, of.Length/of.Step)}
}

// pageOfHooks is the page of the hooks beside the page of a test.
const pageOfHooks = "https://example.com:9443/openapi/?status=http%3A%2F%2Fexample.com"

// newPage returns the page of a gateway whose hooks are served at all addresses of its host.
func newPage(s Source) *Handler {
	return New(s, func() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: 9443} }, nil)
}

// acme is an extension with everything that the page can show, and texts that try to leave their place.
func acme() status.Extension {
	since := now.Add(-time.Hour)
	calls := status.Calls{Total: 3, Failures: 1, NearTimeout: 1, P50: .001, P99: 1.5, Points: status.Points{
		Total: []uint64{1, 0, 2}, Failures: []uint64{0, 0, 1}, P99: []status.Seconds{.1, 0, 1.5},
	}}
	return status.Extension{
		Name: "acme", URL: `https://acme.example/"><script>alert(1)</script>`, Protocol: "REST", State: status.Down, Since: &since,
		Error: "<b>refused</b>", LastSuccess: &since, Stale: true, Selector: "tier=gold",
		Pending:   &status.Pending{URL: "https://new.example", Protocol: "REST", Since: since},
		Discovery: &status.Discovery{Since: since, Outcome: "Timeout", Error: "no answer"},
		Circuit:   status.Circuit{State: "open", Kind: "Timeout", Since: &since}, Calls: calls,
		InFlight: 2, Waiting: 1,
		Handlers: []status.Handler{{
			Name: "gate.acme", Hook: "BeforeClusterUpgrade", Timeout: 10, FailurePolicy: "Fail", State: status.Down, Calls: calls,
			Deprecated: "deprecated since v2; use v3", Lost: []string{"spec.gone"}, Collision: "gate is a name twice", Misspelt: []string{"X has no member \"y\""}, Policy: "first", Conditional: true, RefusedClusters: []string{"team-a/<i>c"},
		}},
		Failures: []status.Failure{
			{At: now, CallID: "CALL", Handler: "gate.acme", Outcome: "ignored", Kind: "Timeout", Message: "no answer", Took: 10, Times: 42},
			{At: now, CallID: "OTHER", Handler: "gate.acme", Outcome: "error", Kind: "Timeout", Message: "no answer", Took: 10, Times: 1},
			{At: now, CallID: "EARLIER", Handler: "gate.acme", Outcome: "ignored", Kind: "Timeout", Message: "no answer", Took: 9, Times: 3},
		},
	}
}

func get(t *testing.T, h http.Handler, target string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	if got := w.Header().Get("Content-Security-Policy"); got != policy {
		t.Errorf("%s: Content-Security-Policy %q", target, got)
	}
	return w.Code, w.Body.String()
}

// textOf returns the text of a page, its links, and the names of its elements.
func textOf(t *testing.T, page string) (text string, links, elements []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			b.WriteString(n.Data)
			if n.NextSibling == nil || n.NextSibling.Data != "wbr" {
				b.WriteString(" ")
			}
		case html.ElementNode:
			elements = append(elements, n.Data)
			for _, a := range n.Attr {
				if a.Key == "href" || a.Key == "src" {
					links = append(links, a.Val)
				}
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("<%s> has the attribute %s, which the policy does not allow", n.Data, a.Key)
				}
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " "), links, elements
}

func TestPages(t *testing.T) {
	hold := status.Hold{
		Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "gate.acme", Message: "not yet", RetryAfter: 30,
		Since: now.Add(-90 * time.Minute), Last: now.Add(-time.Second),
	}
	h := newPage(&gateways{extensions: []status.Extension{acme(), {Name: "other", State: status.Up}}, holds: []status.Hold{hold}, seen: []status.SeenCluster{
		{Namespace: "team-a", Name: "c", Holds: 2}, {Namespace: "team-b", Name: "d"},
	}})
	for target, tt := range map[string]struct {
		code      int
		want, not []string
		links     []string
	}{
		"/": {200, []string{
			"1 of 2 extensions needs attention 1 Down 1 Up 1 Cluster waits for 90m certificate/serving", "updated 2026-01-02 03:04:05 UTC",
			"Cluster Since For what team-a/c 90m gate.acme of BeforeClusterUpgrade: not yet (again after 30s, last 1s ago )",
			"acme", "other", "3 calls, 1 failed, p99 1.5s",
			"<b>refused</b>; its last known 1 handler is still served; called at the previous URL https://acme.example/", "https://new.example", "certificate/serving ends tomorrow", "manifests 1 error d/a.yaml:3: <b>wrong</b>", "v1.2.3",
		}, nil, []string{"/extensions/acme", "/clusters/team-a/c", "/?state=Down", "/clusters/", pageOfHooks}},
		"/?q=CM":      {200, []string{"acme", "1 Down", "Show all"}, []string{"other", "not yet"}, []string{"/?q=CM&state=Down"}},
		"/?state=Up":  {200, []string{"other", "1 Down"}, []string{"refused", "not yet"}, []string{"/?", "/#holds"}},
		"/?q=nothing": {200, []string{"No extension matches. Show all ."}, []string{"refused"}, nil},
		"/extensions/acme": {200, []string{
			"acme Down", "Down for 60m", `https://acme.example/"><script>alert(1)</script>`, "those with tier=gold",
			"failing for 60m: no answer", "open, because calls failed with Timeout, for 60m", "2 in flight (limit 0), 1 waiting (limit 0) Last", "3 calls, 1 failed, p50 1ms, p99 1.5s, 1 near the timeout",
			"gate.acme BeforeClusterUpgrade Down timeout 10s, failure policy Fail, objects as sent, policy first (conditional) 3 calls", "calls are refused, because they fail, for Cluster team-a/<i>c", "gate is a name twice", "is deprecated since v2; use v3", "the conversion loses spec.gone", `An answer of gate.acme : X has no member "y"`,
			"2026-01-02 03:04:05 UTC 45 gate.acme Timeout (ignored) 10s CALL no answer 2026-01-02 03:04:05 UTC 1 gate.acme Timeout",
		}, nil, nil},
		"/extensions/other": {200, []string{"other Up", "not by this process", "None is known.", "None since this process began"}, []string{"refused"}, nil},
		"/extensions/nope":  {404, []string{"No ExtensionConfig has the name nope"}, nil, []string{"/"}},
		"/clusters/team-a/c": {200, []string{
			"Cluster team-a/c", "The last call about it was 60s ago", "not yet",
			"BeforeClusterUpgrade all, in this order: gate.acme Up order 7 (conditional) step of updates at the same time: gates Failing <b>no</b> " +
				"chain, its steps in their order: a.acme Up b.acme Up other.acme Up",
			"GeneratePatches the one that the call names: p.acme Up q.acme Up",
		}, []string{"Not known"}, []string{"/extensions/acme", "/?show=chains#chain-gates"}},
		"/clusters/unknown/c": {404, []string{
			"Not known No call about this Cluster has reached this process since it started", "kubectl get clusters -A", "BeforeClusterUpgrade all",
		}, []string{"What it waits for"}, []string{"/clusters/?q=c"}},
		"/clusters/":             {200, []string{"Cluster Waits Last call team-a/c for 2 handlers 60s ago team-b/d no 60s ago"}, nil, []string{"/clusters/team-b/d"}},
		"/clusters/?q=Team-B%2F": {200, []string{"team-b/d"}, []string{"team-a/c"}, nil},
		"/clusters/?q=x%2Fy": {200, []string{
			"No call about a Cluster like that has reached this process since it started. Show where its hooks would go .",
		}, []string{"team-a/c"}, []string{"/clusters/x/y"}},
	} {
		t.Run(target, func(t *testing.T) {
			code, body := get(t, h, target)
			text, links, elements := textOf(t, body)
			if code != tt.code {
				t.Errorf("got %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %q:\n%s", want, text)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(text, not) {
					t.Errorf("has %q:\n%s", not, text)
				}
			}
			for _, want := range tt.links {
				if !strings.Contains(" "+strings.Join(links, " ")+" ", " "+want+" ") {
					t.Errorf("lacks a link to %s: %q", want, links)
				}
			}
			for _, link := range links {
				if !strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "#") && link != pageOfHooks {
					t.Errorf("leads to another host: %s", link)
				}
			}
			if scripts := strings.Count(strings.Join(elements, " "), "script"); scripts != 1 {
				t.Errorf("%d scripts, want the page's own", scripts)
			}
		})
	}
}

// TestPolicies shows policies, in effect and not, on the first page alone.
func TestPolicies(t *testing.T) {
	g := &gateways{extensions: []status.Extension{acme()}, policies: []status.Policy{
		{Name: "good", Target: "acme/gate", Accepted: true, Reason: "Accepted", Message: "In effect"},
		{Name: "typo", Target: "acme", Reason: "Invalid", Message: "undefined field <b>'nmespace'</b>"},
	}}
	_, body := get(t, newPage(g), "/")
	text, _, _ := textOf(t, body)
	for _, want := range []string{
		"Needs attention, too: 1 policy",
		"Policies Policy State Target Message typo Invalid acme undefined field <b>'nmespace'</b> good Accepted acme/gate In effect",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	for target, h := range map[string]*Handler{"/extensions/acme": newPage(g), "/": newPage(&gateways{})} {
		if _, body := get(t, h, target); strings.Contains(body, "policies") {
			t.Errorf("%s has policies", target)
		}
	}
}

// TestRollouts shows rollouts on the first page, and what differs for their Clusters.
func TestRollouts(t *testing.T) {
	g := &gateways{extensions: []status.Extension{acme()}, rollouts: []status.Rollout{{
		Name: "acme", Stable: "acme", Candidate: "acme-v7", Ready: true, Message: "Clusters may move", Equal: 3, Different: 1, Moved: 2,
		Aborted: "calls <b>fail</b>",
		Clusters: []status.RolloutCluster{{
			Namespace: "team-a", Cluster: "prod", State: "Different", Since: now.Add(-time.Hour), Message: "the answers differ",
			Differences: []status.RolloutDifference{{
				Handler: "patch", Path: "/spec/<b>", Stable: "1", Candidate: "2", Machines: "replaces 3 Machines of MachineDeployment md",
			}},
			OmittedDifferences: 4,
		}},
		MissedClusters: 5,
	}}}
	_, body := get(t, newPage(g), "/")
	text, links, _ := textOf(t, body)
	for _, want := range []string{
		"Rollout State Versions Clusters Message acme Aborted stable acme candidate acme-v7 3 equal, 1 different, 2 moved aborted, no more Clusters move: calls <b>fail</b>",
		"team-a/prod Different 60m patch: /spec/<b> 1 → 2 and 4 more replaces 3 Machines of MachineDeployment md the answers differ",
		"and 5 more: hookgate describe rollout acme lists them",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if !slices.Contains(links, "/clusters/team-a/prod") || !slices.Contains(links, "/extensions/acme-v7") {
		t.Errorf("links: %s", links)
	}
}

// TestChains shows chains on the first page, which the pages of their steps link to.
func TestChains(t *testing.T) {
	x := acme()
	x.Handlers[0].Chains = []string{"updates"}
	g := &gateways{extensions: []status.Extension{x}, chains: []status.Chain{{
		Name: "updates", Hook: "CanUpdateMachine", Reason: "StepMissing", Message: "Calls fail: <b>no</b>", OnPartialCoverage: "Block",
		Steps: []status.ChainStep{{Handler: "gate.acme", Registered: true, OnHold: "Stop"}, {Handler: "disk.none", Optional: true}},
	}}}
	_, body := get(t, newPage(g), "/")
	text, links, _ := textOf(t, body)
	const want = "Chains Chain State Hook Steps, in their order Message updates StepMissing CanUpdateMachine " +
		"gate.acme (stops the chain while it holds) disk.none (not registered) (optional) Calls fail: <b>no</b> (partial coverage: Block)"
	if !strings.Contains(text, want) || !strings.Contains(body, `id="chain-updates"`) || !slices.Contains(links, "/extensions/acme") {
		t.Errorf("want %s and a link to /extensions/acme, got %s %s", want, text, links)
	}
	for _, target := range []string{"/extensions/acme", "/clusters/n/c"} {
		_, body = get(t, newPage(g), target)
		text, links, _ = textOf(t, body)
		if !strings.Contains(text, "step of updates") || !slices.Contains(links, "/?show=chains#chain-updates") {
			t.Errorf("%s does not link to the chain: %s %s", target, text, links)
		}
	}
}

// TestRules shows rules and Jobs on the first page, to which steps link.
func TestRules(t *testing.T) {
	g := &gateways{rules: []status.InProcess{
		{Name: "approved", Hook: "BeforeClusterUpgrade", Ready: true, Reason: "Ready", Message: "Answers", Handler: &status.Handler{
			Name: "rule.approved", Kind: "HookRule", State: status.Failing, Error: "no <b>key</b>", Calls: status.Calls{Total: 7, Failures: 3}, Chains: []string{"all"},
		}},
		{Name: "new", Reason: "Invalid", Message: "spec: none"},
	}, jobs: []status.InProcess{{Name: "backup", Hook: "BeforeClusterUpgrade", Ready: true, Reason: "Ready", Message: "Answers"}}, chains: []status.Chain{{Name: "all", Steps: []status.ChainStep{
		{Handler: "rule.approved", Kind: "HookRule", Registered: true}, {Handler: "job.backup", Kind: "HookJob", Registered: true},
	}}}}
	_, body := get(t, newPage(g), "/")
	text, links, _ := textOf(t, body)
	const want = "Rules Rule State Hook Last five minutes Message approved step of all Failing BeforeClusterUpgrade 7 calls, 3 failed, p99 0s Answers (no <b>key</b>) " +
		"new Invalid spec: none Jobs Job State Hook Last five minutes Message backup Ready BeforeClusterUpgrade Answers"
	if !strings.Contains(text, want) {
		t.Errorf("want %s, got %s", want, text)
	}
	for id, link := range map[string]string{"rule-approved": "/?show=rules#rule-approved", "job-backup": "/?show=jobs#job-backup"} {
		if !strings.Contains(body, `id="`+id+`"`) || !slices.Contains(links, link) {
			t.Errorf("there is no %s, or no link to it: %s", id, links)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	g := &gateways{}
	for n := range maxRows + 3 {
		g.extensions = append(g.extensions, status.Extension{Name: fmt.Sprintf("x-%d", n), State: status.Up})
		g.holds = append(g.holds, status.Hold{Namespace: "n", Cluster: fmt.Sprintf("c-%d", n)})
		g.policies = append(g.policies, status.Policy{Name: fmt.Sprintf("p-%d", n)})
		g.chains = append(g.chains, status.Chain{Name: fmt.Sprintf("s-%d", n)})
		g.rules = append(g.rules, status.InProcess{Name: fmt.Sprintf("r-%d", n)})
		g.jobs = append(g.jobs, status.InProcess{Name: fmt.Sprintf("j-%d", n)})
	}
	rowsOf := func(target string, want ...string) int {
		_, body := get(t, newPage(g), target)
		text, _, elements := textOf(t, body)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q: %s", target, w, text)
			}
		}
		return strings.Count(strings.Join(elements, " ")+" ", " tr ")
	}
	rows := rowsOf("/", "and 193 more: show all extensions", "and 193 more: show all rules", "and 193 more: show all jobs", "and 193 more: show all chains",
		"and 193 more: show all policies", "and 193 more Clusters: Clusters has them", fmt.Sprintf("%d Up", maxRows+3))
	if rows != 5*firstRows+maxWaiting+6 {
		t.Errorf("%d rows, want %d of each kind, %d Clusters that wait, and six heads", rows, firstRows, maxWaiting)
	}
	for words, more := range map[string]string{
		"extensions": "search for a name", "rules": "hookgate get rules", "jobs": "hookgate get jobs", "chains": "hookgate get chains", "policies": "hookgate get policies",
	} {
		if rows := rowsOf("/?show="+words, "and 3 more: "+more); rows != maxRows+1 {
			t.Errorf("%s alone: %d rows, want %d and a head", words, rows, maxRows)
		}
	}
}

// TestWorstFirst has a state of each kind, in the order of names, of which the page folds those that are well.
func TestWorstFirst(t *testing.T) {
	g := &gateways{}
	for i, state := range []status.State{status.Up, status.Unknown, status.Slow, status.Failing, status.Down} {
		g.extensions = append(g.extensions, status.Extension{Name: fmt.Sprintf("x-%d", i), State: state, Handlers: []status.Handler{}})
	}
	g.extensions[3].Error = "h-3.x-3: no"
	for i, state := range []status.State{status.Up, status.Unknown, status.Slow, status.Failing} {
		g.extensions[3].Handlers = append(g.extensions[3].Handlers, status.Handler{Name: fmt.Sprintf("h-%d.x-3", i), State: state})
	}
	g.extensions[3].Handlers[3].Error = "no"
	for i := range fewRows + 1 {
		g.rules = append(g.rules, status.InProcess{Name: fmt.Sprintf("r-%d", i), Ready: i != 5, Reason: map[bool]string{true: "Ready", false: "Invalid"}[i != 5]})
	}
	g.holds = []status.Hold{
		{Namespace: "n", Cluster: "patient", Handler: "a.x", Since: now.Add(-time.Hour), Last: now},
		{Namespace: "n", Cluster: "stuck", Handler: "b.x", Message: "later", Since: now, Last: now},
		{Namespace: "n", Cluster: "stuck", Handler: "c.x", Kind: "BadResponse", Message: "500: database is away", Since: now, Last: now},
	}
	for target, want := range map[string][]string{
		"/": {
			"3 of 5 extensions need attention 1 Down 1 Failing 1 Slow 1 Not called yet 1 Up 2 Clusters wait for 60m, 1 because of failures",
			"x-4 Down 0 0 calls x-3 Failing 4 0 calls h-3.x-3: no x-2 Slow 0 0 calls x-1 Not called yet 0 0 calls x-0 Up 0 0 calls Clusters that wait",
			"n/stuck 0s 2 handlers, 1 failing c.x of : BadResponse 500: database is away (last 0s ago ) b.x of : later",
			"ago ) n/patient 60m a.x", "r-5 Invalid", "r-1 Ready and 3 more: show all rules",
		},
		"/extensions/x-3": {"h-3.x-3 Failing", "h-2.x-3 Slow timeout 0s, failure policy , objects as sent 0 calls Record hookgate record h-2.x-3 h-1.x-3 Not called yet"},
		"/?show=rules":    {"r-5 Invalid", "r-4 Ready", "Show all"},
	} {
		_, body := get(t, newPage(g), target)
		text, _, _ := textOf(t, body)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q: %s", target, w, text)
			}
		}
		if strings.Contains(text, "Clusters that wait") == strings.HasPrefix(target, "/?") || strings.Contains(text, "Notes") {
			t.Errorf("%s: a filter does not hide what it is not about, or a note says again what is said: %s", target, text)
		}
	}
	g.extensions = g.extensions[:2]
	_, body := get(t, newPage(g), "/")
	text, _, _ := textOf(t, body)
	if !strings.Contains(text, "None of 2 extensions needs attention") || strings.Index(text, "n/stuck") > strings.Index(text, "x-0 Up") {
		t.Errorf("the Clusters that wait do not come first where all extensions are well: %s", text)
	}
}

// TestEmptyGateway shows a manifest to copy.
func TestEmptyGateway(t *testing.T) {
	_, body := get(t, newPage(&gateways{}), "/")
	if text, _, _ := textOf(t, body); !strings.Contains(text, "No extension is registered") || !strings.Contains(text, "kind: ExtensionConfig metadata: name: acme spec: clientConfig: url:") {
		t.Errorf("got %s", text)
	}
}

// TestVerdicts says in a word how objects with conditions are.
func TestVerdicts(t *testing.T) {
	for name, tt := range map[string]struct {
		row  any
		want verdict
	}{
		"Rule":        {&status.InProcess{Ready: true, Reason: "Ready"}, verdict{status.Ready, "Ready"}},
		"Audit":       {&status.InProcess{Ready: true, Reason: "Audit"}, verdict{status.Ready, "Audit"}},
		"FailingRule": {&status.InProcess{Ready: true, Reason: "Ready", Handler: &status.Handler{State: status.Failing}}, verdict{status.Failing, "Failing"}},
		"Unanswered":  {&status.InProcess{Reason: "Invalid", Handler: &status.Handler{State: status.Slow}}, verdict{status.Failing, "Invalid"}},
		"Several":     {&status.Chain{Ready: true, Reason: "SeveralOffered"}, verdict{status.Slow, "SeveralOffered"}},
		"NoReason":    {&status.Policy{}, verdict{status.Failing, "Not Accepted"}},
		"Rollout":     {&status.Rollout{Ready: true, Reason: "Ready"}, verdict{status.Ready, "Ready"}},
		"Paused":      {&status.Rollout{Ready: true, Reason: "Ready", Paused: true}, verdict{status.Slow, "Paused"}},
		"Aborted":     {&status.Rollout{Ready: true, Reason: "Aborted", Aborted: "calls fail"}, verdict{status.Failing, "Aborted"}},
		"FailingOne":  {&status.Rollout{Ready: true, Reason: "Ready", Failing: 1}, verdict{status.Failing, "Failing"}},
		"Missing":     {&status.Rollout{Reason: "MemberMissing", Failing: 1}, verdict{status.Failing, "MemberMissing"}},
	} {
		if got := verdictOf(tt.row); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestHoldsOfAClusterAreBounded lists one Cluster that waits for more handlers than there is room for.
func TestHoldsOfAClusterAreBounded(t *testing.T) {
	g := &gateways{}
	for n := range maxHolds + 2 {
		g.holds = append(g.holds, status.Hold{Namespace: "n", Cluster: "c", Handler: fmt.Sprintf("h-%d.x", n), Since: now})
	}
	_, body := get(t, newPage(g), "/")
	text, _, _ := textOf(t, body)
	if !strings.Contains(text, "1 Cluster waits") || !strings.Contains(text, fmt.Sprintf("%d handlers", maxHolds+2)) || strings.Count(text, "last 0s ago") > maxHolds || !strings.Contains(text, "and 2 more: hookgate get holds") {
		t.Errorf("got %s", text)
	}
}

// TestPageOfHooks links to the hooks where the browser finds them.
func TestPageOfHooks(t *testing.T) {
	for host, tt := range map[string]struct {
		address net.Addr
		want    string
	}{
		"localhost:8443": {&net.TCPAddr{IP: net.IPv4zero, Port: 9443}, "https://localhost:9443/openapi/?status=http%3A%2F%2Flocalhost%3A8443"},
		"[::1]:8443":     {&net.TCPAddr{IP: net.IPv6unspecified, Port: 1}, "https://[::1]:1/openapi/?status=http%3A%2F%2F%5B%3A%3A1%5D%3A8443"},
		"gateway":        {&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9443}, "https://127.0.0.1:9443/openapi/?status=http%3A%2F%2Fgateway"},
		"early":          {nil, ""},
		"socket":         {&net.UnixAddr{Name: "/run/x"}, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Host = host
		if got := New(&gateways{}, func() net.Addr { return tt.address }, nil).pageOfHooks(r); got != tt.want {
			t.Errorf("%s: got %q, want %q", host, got, tt.want)
		}
	}
}

func TestAssets(t *testing.T) {
	h := newPage(&gateways{})
	for _, name := range []string{"console.css", "console.js", "icon.svg"} {
		if code, body := get(t, h, "/assets/"+name); code != http.StatusOK || body == "" {
			t.Errorf("%s: %d", name, code)
		}
	}
	for _, target := range []string{"/assets/page.html", "/other", "/extensions/"} {
		if code, _ := get(t, h, target); code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", target, code)
		}
	}
}

// follow opens a stream, and returns a function that returns the next event.
func follow(ctx context.Context, t *testing.T, url string) (next func() string, code int) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func() string {
		var event strings.Builder
		for lines.Scan() {
			if lines.Text() == "event: updated" {
				lines.Scan() // its time
				continue
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				event.WriteString(data + "\n")
			} else if event.Len() > 0 {
				break
			}
		}
		return event.String()
	}, response.StatusCode
}

// TestStreamFollows sees a state that changes, beyond the server's limit for answers.
func TestStreamFollows(t *testing.T) {
	g := &gateways{extensions: []status.Extension{acme()}}
	s := httptest.NewUnstartedServer(newPage(g))
	s.Config.WriteTimeout = time.Millisecond
	s.Start()
	t.Cleanup(s.Close) // after the context of the test has ended its streams
	next, _ := follow(t.Context(), t, s.URL+"/extensions/acme")
	if event := next(); !strings.Contains(event, "Down for") {
		t.Fatalf("first event: %s", event)
	}
	up := status.Up
	g.state.Store(&up)
	if event := next(); !strings.Contains(event, "Up for") || strings.Contains(event, "<html") {
		t.Errorf("second event: %s", event)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := httptest.NewServer(newPage(&gateways{}))
	t.Cleanup(s.Close) // after the context of the test has ended its streams
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxStreams {
		if next, code := follow(ctx, t, s.URL); code != http.StatusOK || next() == "" {
			t.Fatalf("got %d", code)
		}
	}
	if _, code := follow(ctx, t, s.URL); code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d, want 503", code)
	}
	cancel()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, code := follow(t.Context(), t, s.URL); code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("streams that have ended still count")
		}
	}
}

// counted is a source that counts how often it is asked.
type counted struct {
	gateways
	asked atomic.Int32
}

func (c *counted) Gateway() *status.Gateway {
	c.asked.Add(1)
	return c.gateways.Gateway()
}

// TestPagesShareTheList loads pages by the hundred, which must not make the list as often.
func TestPagesShareTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		h := newPage(c)
		for range 3 {
			for range 100 {
				if code, _ := get(t, h, "/"); code != http.StatusOK {
					t.Fatalf("got %d", code)
				}
				get(t, h, "/clusters/a/b")
			}
			time.Sleep(freshness)
		}
		if n := c.asked.Load(); n != 3 {
			t.Errorf("600 pages in three moments have asked %d times, want 3", n)
		}
	})
}

// stalled is a response whose client does not read.
type stalled struct {
	http.ResponseWriter
	read chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	<-s.read
	return len(p), nil
}

func TestPagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, read := newPage(&gateways{}), make(chan struct{})
		for range maxPages {
			go h.ServeHTTP(stalled{httptest.NewRecorder(), read}, httptest.NewRequest(http.MethodGet, "/", nil))
		}
		synctest.Wait()
		if code, _ := get(t, h, "/"); code != http.StatusServiceUnavailable {
			t.Errorf("one more: %d, want 503", code)
		}
		close(read)
		synctest.Wait()
		if code, _ := get(t, h, "/"); code != http.StatusOK {
			t.Errorf("after they have been read: %d", code)
		}
	})
}

// TestTextsDoNotLeaveTheirEvent has an extension whose text ends lines, as a stream of events counts them.
func TestTextsDoNotLeaveTheirEvent(t *testing.T) {
	x := acme()
	x.Error = "first\revent: other\r\rretry: 1000000\rlast"
	s := httptest.NewServer(newPage(&gateways{extensions: []status.Extension{x}}))
	t.Cleanup(s.Close) // after the context of the test has ended its streams
	next, _ := follow(t.Context(), t, s.URL+"/extensions/acme")
	event := next()
	if !strings.Contains(event, "first\nevent: other\n\nretry: 1000000\nlast") || strings.Contains(event, "\r") {
		t.Errorf("got %q", event)
	}
}
