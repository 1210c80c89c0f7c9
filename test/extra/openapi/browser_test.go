// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// lifetime bounds what a test does with its browser. Each of the waits has a bound of its own.
const lifetime = 10 * time.Minute

const pollingInterval = 50 * time.Millisecond

// browser is a Chromium with one page, and what that page did.
type browser struct {
	context.Context

	mu       sync.Mutex
	requests []string // URLs
	problems []string // what the console has: errors of scripts, and loads that the policy forbids
}

// startBrowser runs a Chromium that takes the certificate of the pair, and no other that is not signed by a known
// authority.
func startBrowser(t *testing.T, pair *devcert.Pair) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium: run `make browser`, which installs Debian's package, or install it with the system's packages")
	}
	certificate := certificates.Of(t, pair)
	key := sha256.Sum256(certificate.Leaf.RawSubjectPublicKeyInfo)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])),
		chromedp.WindowSize(1280, 1600), chromedp.WSURLReadTimeout(process.Patience))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	timed, done := context.WithTimeout(ctx, lifetime)
	t.Cleanup(func() {
		done()
		_ = chromedp.Cancel(ctx) // it ends the browser
		cancel()
		stop()
	})
	b := &browser{Context: timed}
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	b.run(t, "watch the page", chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
		_, err := cdp.Call(ctx, page, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = cdp.Call(ctx, page, log.Enable, cdp.Empty{})
		}
		if err == nil {
			_, err = cdp.Call(ctx, page, runtime.Enable, cdp.Empty{})
		}
		return err
	}))
	return b
}

// watch keeps what the page asks for, and what goes wrong on it.
func (b *browser) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.requests = append(b.requests, e.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// seen returns what the page asked for, and what went wrong, so far.
func (b *browser) seen() (requests, problems []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests), slices.Clone(b.problems)
}

// run does something on the page.
func (b *browser) run(t *testing.T, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	value(t, b, what, chromedp.Steps(steps...))
}

// value does something on the page that has a result.
func value[T any](t *testing.T, b *browser, what string, action chromedp.Action[T]) T {
	t.Helper()
	result, err := chromedp.Run(b, action)
	if err != nil {
		requests, problems := b.seen()
		b.screenshot(t, "failed.png")
		t.Fatalf("%s: %v; the console has %q, and the last of %d requests are %q", what, err, problems, len(requests),
			requests[max(0, len(requests)-5):])
	}
	return result
}

// screenshot keeps a picture of the page among the artifacts of the test, which `go test -artifacts` keeps.
func (b *browser) screenshot(t *testing.T, name string) {
	t.Helper()
	picture, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err != nil {
		t.Logf("take a picture: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), picture, 0o600); err != nil {
		t.Error(err)
	}
}

func TestPageInABrowser(t *testing.T) {
	pair := certificates.New(t)
	g := startGateway(t, pair, map[string]string{"acme": startExtension(t, pair)})
	b := startBrowser(t, pair)

	b.run(t, "open the page", chromedp.Navigate(g.url+"/openapi/?status="+url.QueryEscape(g.diagnostics)),
		chromedp.WaitVisible(chromedp.CSS(`#operations-LifecycleHooks-v1alpha1BeforeClusterCreate`)))
	if got := value(t, b, "look for the way back", chromedp.Evaluate[string](`document.querySelector("nav a").href`)); got != g.diagnostics+"/" {
		t.Errorf("the first link leads to %s, want the status page", got)
	}
	operations := value(t, b, "list the operations", chromedp.Evaluate[[]string](
		`Array.from(document.querySelectorAll('.opblock-summary-path')).map(e => e.getAttribute('data-path'))`))
	b.screenshot(t, "operations.png")
	for _, h := range catalog.New().Hooks() {
		path := h.Path("{name}")
		if h.Singleton() {
			path = h.Path("")
		}
		if !slices.Contains(operations, path) {
			t.Errorf("the page does not list %s", path)
		}
	}
	if len(operations) != len(catalog.New().Hooks()) || !strings.HasSuffix(operations[len(operations)-1], "/discovery") {
		t.Errorf("the page lists %d operations, want one for each hook, Discovery last: %q", len(operations), operations)
	}

	// With the example that the page offers: the answer names the Cluster of the example.
	b.try(t, "v1alpha1BeforeClusterCreate", "", "200", "Cluster c1 may be created")
	b.screenshot(t, "tried.png")
	b.try(t, "v1alpha1BeforeClusterCreate", "approval.acme", "200", "Cluster c1 may be created")
	b.try(t, "v1alpha1BeforeClusterDelete", "nobody.acme", "404", `"status": "Failure"`)
	b.click(t, "explain calls", `#explain`)
	b.try(t, "v1alpha1BeforeClusterCreate", "", "200", `"turn": 1`)
	b.click(t, "make calls", `#explain`)
	if got := value(t, b, "look at the answer's example", chromedp.Evaluate[string](
		`document.querySelector('[id$="-v1alpha1BeforeClusterCreate"] .responses-inner .example').textContent`)); !strings.Contains(got, "BeforeClusterCreateResponse") {
		t.Errorf("the example of an answer is %q", got)
	}
	offered := poll[[]string](t, b, "handlers to choose from", `(() => {
		const input = document.querySelector('[id$="-v1alpha1BeforeClusterCreate"] tr[data-param-name="name"] input');
		return input && input.list && Array.from(input.list.options).map(o => o.value);
	})()`)
	if !slices.Equal(offered, []string{"approval.acme"}) {
		t.Errorf("the page offers the handlers %q, want the one of the extension", offered)
	}

	requests, problems := b.seen()
	problems = slices.DeleteFunc(problems, func(p string) bool { return strings.Contains(p, "/nobody.acme") }) // the 404 that it was to be
	if len(problems) > 0 {
		t.Errorf("the console has errors: %q", problems)
	}
	if len(requests) < 6 {
		t.Errorf("the browser asked for %d things only: %q", len(requests), requests)
	}
	for _, request := range requests {
		if u, err := url.Parse(request); err != nil || u.Scheme != "data" && u.Scheme+"://"+u.Host != g.url {
			t.Errorf("the page asked another host: %s", request)
		}
	}

	// The policy holds even if a script of the page wanted to ask another host.
	refused := value(t, b, "ask another host", chromedp.Evaluate[bool](
		`fetch('https://hookgate.example/').then(() => false, () => true)`, chromedp.EvalAwaitPromise))
	if !refused {
		t.Error("the page asked another host")
	}
	process.Eventually(t, "the console says that the policy kept the page from asking another host", func() bool {
		_, problems = b.seen()
		return slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "Content Security Policy") })
	})
}

// TestPagePrefersDark compares the brightness of the page with what the reader prefers, as it is painted.
func TestPagePrefersDark(t *testing.T) {
	pair := certificates.New(t)
	g := startGateway(t, pair, nil)
	b := startBrowser(t, pair)
	b.run(t, "open the page", chromedp.Navigate(g.url+"/openapi/?status=https://hookgate.example/"),
		chromedp.WaitVisible(chromedp.CSS(`#operations-LifecycleHooks-v1alpha1BeforeClusterCreate`)))
	if value(t, b, "look for the way back", chromedp.Evaluate[bool](`document.querySelector("nav").textContent.includes("Status")`)) {
		t.Error("the page links to another host because its address says so")
	}
	brightness := func(colours string) uint64 {
		b.run(t, "prefer "+colours, chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
			_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
			})
			return err
		}))
		painted, err := png.Decode(bytes.NewReader(value(t, b, "take a picture", chromedp.CaptureScreenshot())))
		if err != nil {
			t.Fatal(err)
		}
		b.screenshot(t, colours+".png")
		var sum, points uint64
		for y := range painted.Bounds().Dy() {
			for x := range painted.Bounds().Dx() {
				c := color.GrayModel.Convert(painted.At(x, y)).(color.Gray)
				sum, points = sum+uint64(c.Y), points+1
			}
		}
		return sum / points
	}
	// A picture may be taken before the page is painted anew.
	process.Eventually(t, "a brightness of 200 at least in light", func() bool { return brightness("light") >= 200 })
	process.Eventually(t, "a brightness of 80 at most in dark", func() bool { return brightness("dark") <= 80 })
	// An answer is code, whose colours are for a dark page: they are not inverted, or twice.
	b.try(t, "v1alpha1BeforeClusterCreate", "", "200", "Success")
	for colours, want := range map[string]int{"light": 0, "dark": 2} {
		brightness(colours)
		if got := value(t, b, "count what inverts the answer", chromedp.Evaluate[int](`(() => {
			let n = 0;
			for (let e = document.querySelector('.live-responses-table .response-col_description .microlight'); e; e = e.parentElement) {
				n += getComputedStyle(e).filter.includes('invert');
			}
			return n;
		})()`)); got != want {
			t.Errorf("the answer is inverted %d times in %s colours, want %d", got, colours, want)
		}
	}
	for _, width := range []int64{tabletWidth, phoneWidth} {
		b.run(t, "have little room", chromedp.EmulateViewport(width, 844))
		b.fits(t, fmt.Sprintf("an answer at %d px", width), "nav, .live-responses-table")
	}
	if _, problems := b.seen(); len(problems) > 0 {
		t.Errorf("the console has errors: %q", problems)
	}
}

// click clicks on an element once it is visible. It is an event of the element: one of a mouse at a point misses what the
// page moves meanwhile, as an operation does that opens.
func (b *browser) click(t *testing.T, what, selector string) {
	t.Helper()
	b.run(t, what, chromedp.WaitVisible(chromedp.CSS(selector)),
		chromedp.Evaluate[chromedp.Void]("document.querySelector(`"+selector+"`).click()"))
}

// poll waits until an expression is true, and returns its value. It asks by a timer: a page that is not painted has no
// frames.
func poll[T any](t *testing.T, b *browser, what, expression string) T {
	t.Helper()
	return value(t, b, what, chromedp.Poll[T](expression,
		chromedp.WithPollingInterval(pollingInterval), chromedp.WithPollingTimeout(process.Patience)))
}

// try opens an operation, executes it, and wants an answer.
func (b *browser) try(t *testing.T, operation, handler, status, text string) {
	t.Helper()
	block := `[id$="-` + operation + `"]`
	if !value(t, b, "look at "+operation, chromedp.Evaluate[bool](`document.querySelector('`+block+`').classList.contains('is-open')`)) {
		b.click(t, "open "+operation, block+` .opblock-summary-control`)
	}
	b.run(t, "open "+operation, chromedp.WaitVisible(chromedp.CSS(block+` button.execute`)))
	if handler != "" {
		input := chromedp.CSS(block + ` tr[data-param-name="name"] input`)
		b.run(t, "name the handler", chromedp.SendKeys(input, handler))
		// Swagger UI takes what was typed a moment later.
		poll[bool](t, b, "take the name", `document.querySelector('`+block+` tr[data-param-name="name"] input').value === '`+handler+`'`)
	}
	// An answer to an earlier try is not to be taken for the one to this.
	b.run(t, "clear the answer", chromedp.Evaluate[chromedp.Void](`document.querySelector('`+block+` .btn-clear')?.click()`),
		chromedp.WaitNotPresent(chromedp.CSS(block+` .live-responses-table`)))
	// Swagger UI asks nothing when it is told to execute before it has filled in the form.
	var shown string
	process.Eventually(t, "an answer of "+operation+", with status "+status, func() bool {
		b.click(t, "execute "+operation, block+` button.execute`)
		var err error
		shown, err = chromedp.Run(b, chromedp.Poll[string](`(() => {
			const live = document.querySelector('`+block+` .live-responses-table');
			return live && live.querySelector('tr.response .response-col_status')?.textContent.startsWith('`+status+`') && live.textContent;
		})()`, chromedp.WithPollingInterval(pollingInterval), chromedp.WithPollingTimeout(5*time.Second)))
		if err != nil && !errors.Is(err, chromedp.ErrPollingTimeout) {
			t.Fatalf("execute %s: %v", operation, err)
		}
		return err == nil
	})
	if !strings.Contains(shown, text) {
		t.Errorf("%s %s: the page shows %q, want %q in it", operation, handler, shown, text)
	}
}
