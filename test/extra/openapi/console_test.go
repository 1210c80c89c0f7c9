// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// The widths of the pages, in pixels.
const (
	desktopWidth = 1280
	tabletWidth  = 768
	phoneWidth   = 375
)

// consoleFixture is a gateway with two extensions that are called all the time, its page in a browser, and what ends
// the extension acme.
type consoleFixture struct {
	gateway   *gateway
	browser   *browser
	namespace string // of the Clusters
	stop      func()
}

// The names in most tests are as wide as a telephone.
const (
	longNamespace = "team-with-a-long-name"
	longExtension = "an-extension-with-a-name-as-long-as-a-telephone-is-wide"
)

// newConsole starts the fixture, with a second extension of a name, and Clusters in a namespace.
func newConsole(t *testing.T, namespace, other string, clusters int) *consoleFixture {
	t.Helper()
	pair := certificates.New(t)
	url, stop := startStoppableExtension(t, pair)
	g := startGateway(t, pair, map[string]string{"acme": url, other: startExtension(t, pair)})
	f := &consoleFixture{gateway: g, namespace: namespace, stop: stop}
	calls := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(calls)
		for n := 0; ctx.Err() == nil; n++ {
			f.call(ctx, fmt.Sprintf("wait-for-%d", n%clusters))
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-calls })
	f.browser = startBrowser(t, pair)
	f.view(t, "light", desktopWidth)
	return f
}

// call calls the hook for a Cluster, through both extensions. The outcome is for the page to tell.
func (f *consoleFixture) call(ctx context.Context, cluster string) {
	body := fmt.Sprintf(`{"cluster": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"metadata": {"name": %q, "namespace": %q}}}`, cluster, f.namespace)
	target := f.gateway.url + "/" + hook.APIVersion + "/beforeclustercreate"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return
	}
	if response, err := f.gateway.client.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

// view sets the width of the page and the colours that the reader prefers.
func (f *consoleFixture) view(t *testing.T, colours string, width int64) {
	t.Helper()
	f.browser.run(t, "prefer "+colours, chromedp.EmulateViewport(width, 844),
		chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
			_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
			})
			return err
		}))
}

// open loads a page, and waits until it follows what happens.
func (f *consoleFixture) open(t *testing.T, path string) {
	t.Helper()
	f.browser.run(t, "open "+path, chromedp.Navigate(f.gateway.diagnostics+path), chromedp.WaitVisible(chromedp.CSS("h1")))
	f.await(t, "a live page", `events.readyState === EventSource.OPEN`)
}

// await waits until an expression is true on the page, and returns how long that took.
func (f *consoleFixture) await(t *testing.T, what, expression string) time.Duration {
	t.Helper()
	begin := time.Now()
	for !value(t, f.browser, what, chromedp.Evaluate[bool](`!!(`+expression+`)`)) {
		if time.Since(begin) > process.Patience {
			text := value(t, f.browser, "read the page", chromedp.Evaluate[string](`document.body.innerText`))
			f.browser.screenshot(t, "late.png")
			t.Fatalf("%s: not so after %s; the page shows:\n%s", what, process.Patience, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(begin)
}

// clean fails the test if the console has errors, as it has if the policy forbids something.
func (f *consoleFixture) clean(t *testing.T) {
	t.Helper()
	requests, problems := f.browser.seen()
	if len(problems) > 0 {
		t.Errorf("the console has errors: %q", problems)
	}
	for _, request := range requests {
		if !strings.HasPrefix(request, f.gateway.diagnostics+"/") {
			t.Errorf("the page asked another host: %s", request)
		}
	}
}

const (
	stateOfAcme = `document.querySelector('a[href="/extensions/acme"]').closest('tr').querySelector('.state').textContent`
	// atOnce is how long a page may take to show what happened, on a machine that does other things besides. A page
	// that had to be loaded again would not show it at all.
	atOnce = 30 * time.Second
)

// TestConsoleShowsAStoppedExtension ends an extension that is called all the time. HOOKGATE_PICTURES names a directory
// for the picture of docs/status.md.
func TestConsoleShowsAStoppedExtension(t *testing.T) {
	f := newConsole(t, "team-a", "quota", 1)
	f.open(t, "/")
	f.await(t, "an extension that is up", stateOfAcme+` === "Up"`)
	f.await(t, "a Cluster that waits", `document.querySelector('a[href="/clusters/team-a/wait-for-0"]')`)
	f.browser.run(t, "mark the page", chromedp.Evaluate[chromedp.Void](`window.marked = true; 0`))

	f.stop()
	took := f.await(t, "an extension that is down", stateOfAcme+` === "Down"`)
	t.Logf("the page showed the stopped extension after %s", took)
	if took > atOnce {
		t.Errorf("the page showed the stopped extension after %s, want %s at most", took, atOnce)
	}
	if !value(t, f.browser, "look for the mark", chromedp.Evaluate[bool](`window.marked === true`)) {
		t.Error("the page was loaded again, want that it shows what happens as it is")
	}
	f.await(t, "the cause", `document.querySelector('a[href="/extensions/acme"]').closest('tr').textContent.includes("connection refused")`)
	f.await(t, "the circuit of its calls", `document.querySelector("#table-holds").textContent.includes("circuit is open")`)
	f.await(t, "a chart with the failures", `document.querySelector("#rate-text").textContent.includes("the failed calls at") && document.querySelector(".plot .failed")`)
	f.await(t, "the start of the process as a mark", `document.querySelector(".plot .mark") && document.getElementById("changes").textContent.includes("process started")`)
	f.picture(t, "status.png", 900)

	f.open(t, "/extensions/acme")
	f.await(t, "the failures", `document.querySelector("h1").textContent.includes("Down") &&
		document.querySelector("[aria-labelledby=failures]").textContent.includes("Unreachable")`)
	f.clean(t)
}

// picture takes a picture of the page for the documents.
func (f *consoleFixture) picture(t *testing.T, name string, height int64) {
	t.Helper()
	directory := os.Getenv("HOOKGATE_PICTURES")
	if directory == "" {
		return
	}
	f.browser.run(t, "choose the part", chromedp.EmulateViewport(desktopWidth, height))
	picture := value(t, f.browser, "take a picture", chromedp.CaptureScreenshot())
	if len(picture) > 150<<10 {
		t.Errorf("%s has %d bytes, want 150 KiB at most", name, len(picture))
	}
	if err := os.WriteFile(filepath.Join(directory, name), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// consolePages are the pages, all of which name a Cluster that waits, or that calls are about.
var consolePages = []string{"/", "/extensions/acme", "/clusters/" + longNamespace + "/wait-for-2", "/clusters/?q=wait-for-2"}

// violation is what axe-core found.
type violation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Where  []string `json:"where"`
}

// TestConsoleIsAccessible examines each page with axe-core, in both sets of colours and at all widths, and wants nothing
// to be clipped, to be scrolled sideways, or to be gone where there is little room.
func TestConsoleIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(process.Program(t, "HOOKGATE_AXE"))
	if err != nil {
		t.Fatal(err)
	}
	f := newConsole(t, longNamespace, longExtension, 3)
	for _, stopped := range []bool{false, true} {
		if stopped {
			f.stop()
			f.open(t, "/")
			f.await(t, "an extension that is down", stateOfAcme+` === "Down"`)
		}
		for _, path := range consolePages {
			f.open(t, path)
			f.await(t, "a Cluster on "+path, `Array.from(document.querySelectorAll("#main table")).some((e) => e.textContent.includes("wait-for-2"))`)
			f.browser.run(t, "load axe-core", chromedp.Evaluate[chromedp.Void](string(axe)+";0"))
			for _, colours := range []string{"light", "dark"} {
				for _, width := range []int64{desktopWidth, tabletWidth, phoneWidth} {
					name := fmt.Sprintf("%s stopped=%t %s %d", path, stopped, colours, width)
					f.view(t, colours, width)
					f.examine(t, name)
					f.browser.fits(t, name, "main, header, footer")
				}
			}
		}
	}
	f.clean(t)
}

// clipped lists what is not on the screen as a whole: elements that reach beyond its edges, that have to be scrolled
// sideways, or whose text is not painted. What is for screen readers alone, such as heads of tables whose cells have labels,
// is meant to be out of sight.
const clipped = `JSON.stringify(Array.from(document.querySelectorAll("SELECTOR")).flatMap((part) => Array.from(part.querySelectorAll("*")))
	.filter((e) => !e.closest("details:not([open]) > :not(summary), .hidden, .skip, [hidden], svg, datalist, option, script, style") && e.textContent.trim() !== "")
	.filter((e) => getComputedStyle(e.closest("thead") ?? e).position !== "absolute")
	.filter((e) => {
		const r = e.getBoundingClientRect(), inline = getComputedStyle(e).display === "inline";
		return r.width === 0 || r.left < -1 || r.right > document.documentElement.clientWidth + 1 ||
			!inline && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible";
	}).map((e) => e.tagName + "#" + e.id + "." + e.className + " " + e.textContent.trim().slice(0, 60)))`

// fits fails the test for everything of a page, in the parts that a selector names, that is clipped.
func (b *browser) fits(t *testing.T, name, selector string) {
	t.Helper()
	var all []string
	found := value(t, b, "measure "+name, chromedp.Evaluate[string](strings.Replace(clipped, "SELECTOR", selector, 1)))
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		t.Fatalf("%s: %q: %v", name, found, err)
	}
	if wide := value(t, b, "measure "+name, chromedp.Evaluate[int64](
		`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); wide > 0 {
		all = append(all, fmt.Sprintf("the page is %d px wider than the screen", wide))
	}
	if len(all) > 0 {
		b.screenshot(t, "clipped.png")
		t.Errorf("%s: clipped or gone: %q", name, all[:min(len(all), 10)])
	}
}

// examine fails the test for everything that axe-core finds.
func (f *consoleFixture) examine(t *testing.T, name string) {
	t.Helper()
	found := value(t, f.browser, "examine "+name, chromedp.Evaluate[string](`axe.run().then((r) => JSON.stringify(r.violations.map((v) =>
		({id: v.id, impact: v.impact, help: v.help, where: v.nodes.map((n) => n.html + " " + n.failureSummary)}))))`, chromedp.EvalAwaitPromise))
	var violations []violation
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatalf("%s: axe-core answers %q: %v", name, found, err)
	}
	for _, v := range violations {
		t.Errorf("%s: %s (%s): %s: %q", name, v.ID, v.Impact, v.Help, v.Where)
	}
}

// TestConsolePrefersDark compares the colours of the page with what the reader prefers.
func TestConsolePrefersDark(t *testing.T) {
	f := newConsole(t, longNamespace, longExtension, 3)
	f.open(t, "/")
	brightness := func(colours string) int {
		f.view(t, colours, desktopWidth)
		return value(t, f.browser, "look at the background", chromedp.Evaluate[int](
			`Math.max(...getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number))`))
	}
	if light, dark := brightness("light"), brightness("dark"); light < 200 || dark > 60 {
		t.Errorf("the background has the brightness %d in light and %d in dark, want 200 at least and 60 at most", light, dark)
	}
	f.clean(t)
}

// focus describes the element that has the focus.
type focus struct {
	Name    string `json:"name"`
	Outline bool   `json:"outline"` // it is seen to have the focus
	Inside  bool   `json:"inside"`  // it is on the screen
}

const describeFocus = `JSON.stringify((() => {
	const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
	return {
		name: e.className === "skip" ? "skip" : e.tagName === "SUMMARY" ? e.parentElement.id.replace(/^held-.*(.)$/, "held-$1") : e.id || e.getAttribute("href") || e.textContent.trim(),
		outline: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2,
		inside: r.width > 0 && r.height > 0 && r.right > 0 && r.left < innerWidth && r.bottom > 0 && r.top < innerHeight,
	};
})())`

// tab presses the tabulator, and returns what has the focus then.
func (f *consoleFixture) tab(t *testing.T) (e focus) {
	t.Helper()
	f.browser.run(t, "press Tab", chromedp.KeyEvent(kb.Tab))
	described := value(t, f.browser, "look at the focus", chromedp.Evaluate[string](describeFocus))
	if err := json.Unmarshal([]byte(described), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestConsoleByKeyboard(t *testing.T) {
	f := newConsole(t, longNamespace, longExtension, 3)
	f.open(t, "/")
	f.await(t, "Clusters that wait", `document.querySelectorAll('#table-holds a').length === 3`)
	var order []string
	for len(order) < 40 {
		e := f.tab(t)
		if !e.Outline || !e.Inside {
			t.Errorf("%q has the focus: outline %t, on the screen %t", e.Name, e.Outline, e.Inside)
		}
		order = append(order, e.Name)
		if e.Name == "/extensions/"+longExtension { // the last one
			break
		}
	}
	cluster := "/clusters/" + longNamespace + "/wait-for-"
	hooks := f.gateway.url + "/openapi/?status=" + url.QueryEscape(f.gateway.diagnostics)
	want := []string{
		"skip", "/", "/", "/clusters/", hooks, "cluster", "Find", "/?state=Up", "/#holds", "table-holds", cluster + "0", "held-0", cluster + "1", "held-1",
		cluster + "2", "held-2", "/?range=15m#calls", "/?range=1h#calls", "/?range=24h#calls", "changes", "numbers", "q", "Search", "table-list", "/extensions/acme", "/extensions/" + longExtension,
	}
	if !slices.Equal(order, want) {
		t.Errorf("the order of the tabulator is\n%q, want\n%q", order, want)
	}

	// What has the focus keeps it while the page changes, a region among it.
	for what, element := range map[string]string{
		"a link":                 `document.querySelector('a[href="/extensions/acme"]')`,
		"a region":               `document.getElementById("table-holds")`,
		"a field with some text": `document.getElementById("q")`,
	} {
		f.browser.run(t, "focus "+what, chromedp.Evaluate[chromedp.Void](`(() => {
			const e = `+element+`;
			e.focus();
			if (e.id === "q") { e.value = "typed"; e.setSelectionRange(1, 3); }
			window.before = e;
		})(); 0`))
		f.await(t, "another page", `!window.before.isConnected`)
		f.await(t, what+" that keeps the focus", `document.activeElement === `+element)
	}
	updated := value(t, f.browser, "look at the time", chromedp.Evaluate[string](`document.getElementById("updated").textContent`))
	f.await(t, "a later time of the page", fmt.Sprintf(`document.getElementById("updated").textContent > %q`, updated))

	// A range, a search, and a link, with the keyboard alone.
	f.browser.run(t, "choose a range", chromedp.Evaluate[chromedp.Void](`document.querySelector('a[href="/?range=1h#calls"]').focus(); 0`),
		chromedp.KeyEvent(kb.Enter))
	f.await(t, "the hour, which stays chosen", `location.search === "?range=1h" && typeof events === "object" && events.readyState === EventSource.OPEN &&
		document.querySelector(".ranges [aria-current]").textContent === "1 hour" && document.querySelector(".times").textContent.includes("60 min")`)
	f.browser.run(t, "search", chromedp.Evaluate[chromedp.Void](`{
		const q = document.getElementById("q"); q.value = ""; q.focus(); } 0`),
		chromedp.KeyEvent("acme"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("h1")))
	f.await(t, "the one extension", `location.search === "?q=acme" && document.querySelectorAll('a[href^="/extensions/"]').length === 1`)
	f.browser.run(t, "go to the extension", chromedp.Evaluate[chromedp.Void](`document.querySelector('a[href="/extensions/acme"]').focus(); 0`),
		chromedp.KeyEvent(kb.Enter))
	f.await(t, "the page of the extension", `location.pathname === "/extensions/acme"`)
	// A Cluster that does not wait, and one that nobody knows.
	f.browser.run(t, "find a Cluster", chromedp.WaitVisible(chromedp.CSS("#cluster")),
		chromedp.Evaluate[chromedp.Void](`document.getElementById("cluster").focus(); 0`), chromedp.KeyEvent("wait-for-1"), chromedp.KeyEvent(kb.Enter))
	f.await(t, "the one Cluster", `location.pathname === "/clusters/" && document.querySelectorAll('#table-clusters a').length === 1`)
	f.clean(t)
}
