// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/seeing/console"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// busy is a gateway with much to look at, and something wrong of every kind.
type busy struct{ console.Source }

func (busy) Gateway() *status.Gateway {
	now := time.Now()
	ago := func(d time.Duration) *time.Time { t := now.Add(-d); return &t }
	calls := func(total, failures uint64, p99 status.Seconds) status.Calls {
		p := status.Points{}
		for i := range uint64(20) {
			p.Total, p.Failures, p.P99 = append(p.Total, total/20+i%3), append(p.Failures, failures/20), append(p.P99, p99)
		}
		return status.Calls{Total: total, Failures: failures, P50: p99 / 2, P99: p99, Points: p}
	}
	handler := func(name, hook string, state status.State, message string, c status.Calls) status.Handler {
		return status.Handler{Name: name, Hook: hook, State: state, Error: message, Timeout: 10, FailurePolicy: "Fail", Calls: c}
	}
	g := &status.Gateway{ID: "hookgate-7d9f", Version: "v0.1.0", Started: *ago(3 * time.Hour), Now: now, Window: 300}
	add := func(name string, state status.State, message string, c status.Calls, handlers ...status.Handler) {
		g.Extensions = append(g.Extensions, status.Extension{
			Name: name, URL: "https://" + name + ".extensions.svc:443", Protocol: "REST", State: state, Since: ago(35 * time.Minute),
			Error: message, Calls: c, Handlers: handlers, Circuit: status.Circuit{State: "closed"},
		})
	}
	add("acme", status.Up, "", calls(1200, 0, .012), handler("patch.acme", "GeneratePatches", status.Up, "", calls(1200, 0, .012)))
	add("approvals", status.Failing, "gate.approvals: 12 of 12 calls failed lately: 500: database is away; and 1 more of 8 handlers",
		calls(120, 40, .5), handler("gate.approvals", "BeforeClusterUpgrade", status.Failing, "12 of 12 calls failed lately: 500: database is away", calls(60, 40, .5)),
		handler("create.approvals", "BeforeClusterCreate", status.Up, "", calls(60, 0, .01)))
	add("billing", status.Up, "", calls(3, 0, .002))
	add("dns", status.Slow, "zone.dns: 9 of 10 calls lately took at least eight tenths of the timeout of 10s", calls(10, 0, 9.5))
	for i := range 24 {
		add(fmt.Sprintf("fleet-addon-%02d", i), status.Up, "", calls(uint64(100*i), 0, .02))
	}
	add("inventory", status.Down, "connect to inventory.extensions.svc:443: connection refused", calls(80, 80, .001))
	add("legacy", status.Unknown, "", status.Calls{})
	add("quota", status.Up, "", calls(900, 0, .004), handler("limit.quota", "ValidateTopology", status.Up, "", calls(900, 0, .004)))
	for i := range 8 {
		h := status.Hold{
			Namespace: "team-a", Cluster: "production-eu-west-1", Hook: "BeforeClusterUpgrade", Handler: fmt.Sprintf("gate-%d.approvals", i),
			Message: "waits for the change board", RetryAfter: 30, Since: *ago(35 * time.Minute), Last: *ago(4 * time.Second),
		}
		if i >= 6 {
			h.Kind, h.Message, h.RetryAfter = "BadResponse", "500: database is away", 0
		}
		g.Holds = append(g.Holds, h)
	}
	for i := range 6 {
		g.Holds = append(g.Holds, status.Hold{
			Namespace: "team-b", Cluster: fmt.Sprintf("staging-%d", i), Hook: "BeforeClusterCreate", Handler: "create.approvals",
			Message: "the budget of the team is not approved", RetryAfter: 30, Since: *ago(time.Duration(12+i) * time.Minute), Last: *ago(time.Second),
		})
	}
	for i, name := range []string{"approved", "business-hours", "change-freeze", "one-upgrade-per-region", "owner-is-set", "size", "two-zones", "version-is-known"} {
		h := handler("rule."+name, "BeforeClusterUpgrade", status.Ready, "", calls(20, 0, .0005))
		r := status.InProcess{Name: name, Hook: "BeforeClusterUpgrade", Ready: true, Reason: "Ready", Message: "Answers as HookRule " + name, Handler: &h}
		if i == 3 {
			r.Ready, r.Reason, r.Message, r.Handler = false, "Invalid", "spec.check: undeclared reference to 'clustr'; did you mean cluster?", nil
		}
		g.Rules = append(g.Rules, r)
	}
	g.Jobs = []status.InProcess{{Name: "backup-etcd", Hook: "BeforeClusterUpgrade", Ready: true, Reason: "Ready", Message: "Runs Jobs in namespace jobs"}}
	for i := range 6 {
		p := status.Policy{Name: fmt.Sprintf("policy-%d", i), Target: fmt.Sprintf("fleet-addon-%02d/gate", i), Accepted: true, Reason: "Accepted", Message: "In effect"}
		if i == 2 {
			p.Accepted, p.Reason, p.Message = false, "TargetNotFound", "There is no ExtensionConfig fleet-addon-99; it takes effect as soon as its target appears"
		}
		g.Policies = append(g.Policies, p)
	}
	g.Chains = []status.Chain{
		{Name: "machine-updates", Hook: "CanUpdateMachine", Ready: true, Reason: "Ready", Message: "Answers", Steps: []status.ChainStep{
			{Handler: "patch.acme", Registered: true}, {Handler: "rule.approved", Kind: "HookRule", Registered: true},
		}},
		{Name: "updates", Hook: "CanUpdateMachineSet", Reason: "StepMissing", Message: "Calls fail: step disk.storage is not registered", Steps: []status.ChainStep{
			{Handler: "patch.acme", Registered: true}, {Handler: "disk.storage"},
		}},
	}
	g.Rollouts = []status.Rollout{{
		Name: "acme", Stable: "acme", Candidate: "acme-v7", Ready: true, Reason: "Ready", Message: "Clusters may move", Equal: 37, Different: 2, Moved: 4, Failing: 1,
		Clusters: []status.RolloutCluster{
			{Namespace: "team-a", Cluster: "production-eu-west-1", State: "Different", Since: *ago(35 * time.Minute), Message: "the answers differ", OmittedDifferences: 3,
				Differences: []status.RolloutDifference{{Handler: "patch", Object: "KubeadmControlPlaneTemplate/quick-start-control-plane", Path: "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs",
					Stable: `{"cloud-provider":"external"}`, Candidate: `{"cloud-provider":"none"}`, Machines: "replaces 3 Machines of the control plane"}}},
			{Namespace: "team-b", Cluster: "staging-1", State: "Moved", Since: *ago(3 * time.Hour), Message: "moved", Failure: "500: database is away"},
		},
	}}
	g.Notices = []status.Notice{{Name: "certificate/serving", Text: "the certificate ends in 6 days"}}
	return g
}

// Extension returns the extension alone, with failures.
func (b busy) Extension(name string) (*status.Gateway, bool) {
	g := b.Gateway()
	for _, x := range g.Extensions {
		if x.Name == name {
			x.Failures = []status.Failure{{
				At: g.Now, CallID: "01JDXK3ZQ8T1V5W7Y9ABCDEFGH", Handler: "gate.approvals", Outcome: "error", Kind: "BadResponse",
				Message: "500: database is away", Took: .2, Times: 12,
			}}
			g.Extensions = []status.Extension{x}
			return g, true
		}
	}
	return g, false
}

// History returns calls that get slow and fail after something has changed, of a process that has just started if the
// range is long.
func (busy) History(_, _ string, of activity.Range) *status.History {
	h := &status.History{Now: time.Now(), Step: of.Step}
	h.Start = h.Now.Truncate(of.Step).Add(of.Step - of.Length)
	n := int(of.Length / of.Step)
	h.Started = h.Start.Add(of.Length - min(of.Length, 3*time.Hour))
	at := func(step int) time.Time { return h.Start.Add(time.Duration(step) * of.Step) }
	for i := range n {
		p := status.HistoryPoint{Calls: uint64(40 + 7*(i%5)), P50: .012, P99: .12 + .01*status.Seconds(i%4)}
		switch {
		case at(i).Before(h.Started), i > n/5 && i < n/4:
			p = status.HistoryPoint{}
		case i > 2*n/3 && i < 5*n/6:
			p.Failures, p.P50, p.P99 = p.Calls/3, .2, .9
		}
		h.Points = append(h.Points, p)
	}
	last := &h.Points[n-1] // which is still running
	last.Calls = uint64(float64(last.Calls) * float64(max(h.Now.Sub(at(n-1)), activity.Slot)) / float64(of.Step))
	for i, text := range []string{
		"acme-v7 registered", "rollout acme: acme-v7 beside acme", "rollout acme: 3 Clusters moved to acme-v7, 3 in all", "policy policy-2 changed",
		"an-extension-with-a-name-as-long-as-a-telephone-is-wide got another URL", "rollout acme: 1 Cluster moved to acme-v7, 4 in all",
	} {
		h.Changes = append(h.Changes, status.Change{At: at(n/2 + i*n/12), Text: text})
	}
	h.Changes[2].At = h.Changes[1].At
	return h
}

// Cluster returns a Cluster that waits for many handlers.
func (b busy) Cluster(namespace, name string) (*status.Cluster, bool) {
	g := b.Gateway()
	c := &status.Cluster{Now: g.Now, Namespace: namespace, Name: name, LastCall: &g.Now}
	for _, h := range g.Holds {
		if h.Namespace == namespace && h.Cluster == name {
			c.Holds = append(c.Holds, h)
		}
	}
	for _, h := range []string{"BeforeClusterUpgrade", "AfterControlPlaneInitialized"} {
		c.Hooks = append(c.Hooks, status.Hook{Name: h, Called: status.CalledAll, Handlers: []status.HookedHandler{
			{Extension: "approvals", Turn: 1, Handler: g.Extensions[1].Handlers[0]}, {Extension: "acme", Turn: 2, Handler: g.Extensions[0].Handlers[0]},
		}})
	}
	return c, true
}

// brokenWords lists the words with a line break inside, but those that are longer than two thirds of one. A word
// may be broken behind a hyphen, and where the page says so.
const brokenWords = `JSON.stringify((() => {
	const main = document.getElementById("main"), broken = [], range = document.createRange();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const element = node.parentElement;
		if (element.closest("script, .hidden, .skip, [hidden], thead") || !element.checkVisibility()) continue;
		for (const word of node.data.matchAll(/[^\s-]+-*/g)) {
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			const parts = Array.from(range.getClientRects()).filter((r) => r.width > 0);
			const lines = new Set(parts.map((r) => Math.round(r.top)));
			const width = parts.reduce((sum, r) => sum + r.width, 0);
			if (lines.size > 1 && width < Math.min(main.clientWidth, 2 * innerWidth / 3)) broken.push(word[0] + " in " + node.data.trim().slice(0, 60));
		}
	}
	return broken;
})())`

// wrappedNames lists the names of more than one line that have room for one beside them.
const wrappedNames = `JSON.stringify(Array.from(document.querySelectorAll(".name")).filter((e) => {
	const cells = Array.from(e.closest("tr").children), style = getComputedStyle(e);
	const free = cells.reduce((sum, c) => sum + (c.textContent.trim() === "" ? c.clientWidth : 0), 0);
	return e.checkVisibility() && free >= 400 && e.clientHeight > 1.9 * parseFloat(style.lineHeight);
}).map((e) => e.textContent))`

// maxPhonePage is the height of the first page on a telephone, at most, in pixels: some six screens.
const maxPhonePage = 5300

// TestBusyPageIsReadable looks at the pages of a gateway in which something of every kind is wrong. HOOKGATE_LOOK names
// a directory for pictures of them.
func TestBusyPageIsReadable(t *testing.T) {
	axe, err := os.ReadFile(process.Program(t, "HOOKGATE_AXE"))
	if err != nil {
		t.Fatal(err)
	}
	hooks := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9443}
	server := httptest.NewServer(console.New(busy{}, func() net.Addr { return hooks }, nil))
	t.Cleanup(server.Close)
	f := &consoleFixture{gateway: &gateway{diagnostics: server.URL}, browser: startBrowser(t, certificates.New(t))}
	for page, path := range map[string]string{
		"first": "/", "day": "/?range=24h", "rules": "/?show=rules", "rollouts": "/?show=rollouts", "failing": "/?state=Failing", "extension": "/extensions/approvals?range=1h&handler=gate.approvals",
		"cluster": "/clusters/team-a/production-eu-west-1",
	} {
		f.open(t, path)
		f.browser.run(t, "load axe-core", chromedp.Evaluate[chromedp.Void](string(axe)+";0"))
		for _, width := range []int64{desktopWidth, tabletWidth, phoneWidth} {
			for _, colours := range []string{"light", "dark"} {
				name := fmt.Sprintf("%s %s %d", page, colours, width)
				f.view(t, colours, width)
				f.examine(t, name)
				f.look(t, name)
			}
			f.browser.fits(t, path, "main, header, footer")
			for what, expression := range map[string]string{"broken words": brokenWords, "wrapped names": wrappedNames} {
				if found := value(t, f.browser, what, chromedp.Evaluate[string](expression)); found != "[]" {
					t.Errorf("%s at %d px: %s: %s", path, width, what, found)
				}
			}
		}
		height := value(t, f.browser, "measure the page", chromedp.Evaluate[int](`document.documentElement.scrollHeight`))
		if t.Logf("%s at %d px: %d px high", path, phoneWidth, height); page == "first" && height > maxPhonePage {
			t.Errorf("the first page is %d px high on a telephone, want %d at most", height, maxPhonePage)
		}
	}
	f.clean(t)
	// What measures the words notices a column that has no room for one.
	f.browser.run(t, "narrow a column", chromedp.Evaluate[chromedp.Void](
		`document.styleSheets[0].insertRule("td { display: block; width: 2rem; overflow-wrap: anywhere; white-space: normal }", document.styleSheets[0].cssRules.length); 0`))
	if found := value(t, f.browser, "broken words", chromedp.Evaluate[string](brokenWords)); found == "[]" {
		t.Error("no word is broken in a column of 2 rem")
	}
}

// TestFoldStaysOpen opens what is folded, without a script, while the page changes.
func TestFoldStaysOpen(t *testing.T) {
	server := httptest.NewServer(console.New(busy{}, func() net.Addr { return nil }, nil))
	t.Cleanup(server.Close)
	f := &consoleFixture{gateway: &gateway{diagnostics: server.URL}, browser: startBrowser(t, certificates.New(t))}
	f.view(t, "light", desktopWidth)
	f.open(t, "/")
	const held = `document.getElementById("held-team-a-production-eu-west-1")`
	if got := value(t, f.browser, "read the fold", chromedp.Evaluate[string](held+`.querySelector("summary").textContent`)); got != "8 handlers, 2 failing" {
		t.Errorf("the fold says %q", got)
	}
	f.browser.run(t, "open it, as with a mouse", chromedp.Evaluate[chromedp.Void](
		`(() => { const s = `+held+`.querySelector("summary"); s.focus(); s.click(); window.before = s; })(); 0`))
	f.await(t, "another page", `!window.before.isConnected`)
	f.await(t, "an open fold, with the focus", held+`.open && document.activeElement === `+held+`.querySelector("summary")`)
	f.clean(t)
}

// TestChartsWithoutScripts looks at the charts in a browser that runs no scripts. HOOKGATE_PICTURES names a directory for
// the picture of docs/status.md.
func TestChartsWithoutScripts(t *testing.T) {
	server := httptest.NewServer(console.New(busy{}, func() net.Addr { return nil }, nil))
	t.Cleanup(server.Close)
	f := &consoleFixture{gateway: &gateway{diagnostics: server.URL}, browser: startBrowser(t, certificates.New(t))}
	f.browser.run(t, "run no scripts", chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
		_, err := cdp.Call(ctx, page, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	for _, width := range []int64{phoneWidth, tabletWidth, desktopWidth} {
		f.view(t, "light", width)
		f.browser.run(t, "open the page", chromedp.Navigate(server.URL+"/"), chromedp.WaitVisible(chromedp.CSS(".plot")))
		f.browser.run(t, "choose an hour", chromedp.Click(chromedp.CSS(`.ranges a[href*="1h"]`)), chromedp.WaitVisible(chromedp.CSS(`.ranges a[href*="1h"][aria-current]`)))
		for what, least := range map[string]int64{"#main": 300, ".plot path.p99": width / 6, ".plot path.p50": width / 6, ".plot .succeeded": 2, ".plot .failed": 2, ".plot .mark text": 5} {
			if drawn := value(t, f.browser, "measure "+what, chromedp.Evaluate[float64](
				fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().width`, what))); drawn < float64(least) {
				t.Errorf("%s is %g px wide on a page of %d px, want %d at least", what, drawn, width, least)
			}
		}
		if size := value(t, f.browser, "measure texts", chromedp.Evaluate[float64](
			`Math.min(...Array.from(document.querySelectorAll(".chart text, .scale span"), (e) => e.getBoundingClientRect().height))`)); size < 12 {
			t.Errorf("a text of a chart is %g px high on a page of %d px, want 12 at least", size, width)
		}
	}
	f.browser.run(t, "show the changes", chromedp.Click(chromedp.CSS("#changes summary")),
		chromedp.Evaluate[chromedp.Void](`document.getElementById("calls").scrollIntoView(); 0`))
	f.picture(t, "charts.png", 460)
	f.clean(t)
}

// look takes pictures of a page from its top to its end, a screen each.
func (f *consoleFixture) look(t *testing.T, name string) {
	t.Helper()
	directory := os.Getenv("HOOKGATE_LOOK")
	if directory == "" {
		return
	}
	const screen = 1500
	width := value(t, f.browser, "measure the page", chromedp.Evaluate[int64](`innerWidth`))
	height := value(t, f.browser, "measure the page", chromedp.Evaluate[int](`document.documentElement.scrollHeight`))
	f.browser.run(t, "have room", chromedp.EmulateViewport(width, screen))
	for at := 0; at < height; at += screen {
		f.browser.run(t, "scroll", chromedp.Evaluate[chromedp.Void](fmt.Sprintf("scrollTo(0, %d); 0", at)))
		picture := value(t, f.browser, "take a picture", chromedp.CaptureScreenshot())
		file := fmt.Sprintf("%s %d.png", name, at/screen)
		if err := os.WriteFile(filepath.Join(directory, file), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
