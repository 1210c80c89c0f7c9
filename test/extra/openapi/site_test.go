// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// startSite serves the site of docs/ as it is published with two releases and a prerelease, and returns its URL.
func startSite(t *testing.T) string {
	t.Helper()
	process.Program(t, "HOOKGATE_DOCS")
	branch, served := filepath.Join(t.TempDir(), "branch"), filepath.Join(t.TempDir(), "served")
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	run("git", "init", "-q", "--bare", branch)
	for _, version := range []string{"v0.9.0", "v0.10.0", "v0.11.0-rc.1"} {
		run(filepath.Join("..", "..", "..", "tools", "docs", "publish"), branch, version)
	}
	run("git", "clone", "-q", "--branch", "gh-pages", branch, served)
	server := httptest.NewServer(http.FileServerFS(os.DirFS(served)))
	t.Cleanup(server.Close)
	return server.URL
}

// TestSite reads the site as a person does who has a question.
func TestSite(t *testing.T) {
	url := startSite(t)
	b := startBrowser(t, certificates.New(t))
	open := func(page string) {
		t.Helper()
		b.run(t, "open "+page, chromedp.Navigate(url+page), chromedp.WaitVisible(chromedp.CSS("article h1")))
	}
	texts := func(what, expression string) []string {
		t.Helper()
		return poll[[]string](t, b, what,
			`(() => { const all = Array.from(`+expression+`); return all.length > 0 && all; })()`)
	}

	open("/")
	if got := value(t, b, "read the address", chromedp.Evaluate[string](`location.href`)); got != url+"/latest/" {
		t.Errorf("the site begins at %s, want the latest release", got)
	}
	index := texts("the index", `document.querySelectorAll("article li > a:first-child"), a => a.href`)
	index = slices.DeleteFunc(index, func(href string) bool { return !strings.HasPrefix(href, url) })
	sidebar := texts("the sidebar",
		`document.querySelectorAll(".md-sidebar--primary a.md-nav__link:not(.md-nav--secondary a)"), a => a.href`)
	if len(index) < 40 || !slices.Equal(index, sidebar[1:]) { // the first is the index itself
		t.Errorf("the sidebar is not the index:\n%q\n%q", sidebar, index)
	}
	b.screenshot(t, "index.png")

	b.click(t, "open the search", ".md-search__button")
	const search = `Array.from(document.querySelectorAll("div")).find(e => e.shadowRoot)?.shadowRoot`
	for question, page := range map[string]string{
		"the gateway is down": "operate",
		"remove it":           "deploy",
		"back up and restore": "backup",
		"upgrade":             "upgrading",
		"all metrics":         "metrics",
	} {
		poll[bool](t, b, "ask "+question, `(() => {
			const input = `+search+`?.querySelector("input");
			if (!input) return false;
			Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, "`+question+`");
			return input.dispatchEvent(new Event("input", {bubbles: true}));
		})()`)
		want := "/latest/" + page + ".html"
		poll[bool](t, b, "find "+page+" by "+question,
			`Array.from(`+search+`.querySelectorAll("a")).slice(0, 3).some(a => a.pathname === "`+want+`")`)
	}
	b.screenshot(t, "search.png")

	open("/v0.9.0/rules.html")
	versions := texts("the versions", `document.querySelectorAll(".md-version__link"), a => a.innerText`)
	if want := []string{"v0.11.0-rc.1", "v0.10.0", "v0.9.0"}; !slices.Equal(versions, want) {
		t.Errorf("the site has the versions %q, want %q", versions, want)
	}
	b.run(t, "read that it is not the latest", chromedp.WaitVisible(chromedp.CSS("[data-md-component=outdated]")))
	edit := texts("the link to edit", `document.querySelectorAll("a[rel=edit]"), a => a.href`)
	if want := []string{"https://github.com/hookgate/hookgate/edit/main/docs/rules.md"}; !slices.Equal(edit, want) {
		t.Errorf("the page is edited at %q, want %q", edit, want)
	}
	b.click(t, "copy code", "button[data-md-type=copy]")
	b.run(t, "read that it is copied", chromedp.WaitVisible(chromedp.CSS(".md-dialog--active")))
	const scheme = `document.body.getAttribute("data-md-color-scheme")`
	for _, want := range []string{"default", "slate"} {
		b.click(t, "change the colours", "label[for^=__palette]:not([hidden])")
		poll[bool](t, b, "have the colours "+want, scheme+` === "`+want+`"`)
	}
	b.screenshot(t, "dark.png")

	requests, problems := b.seen()
	if len(problems) > 0 {
		t.Errorf("the console has errors: %q", problems)
	}
	for _, request := range requests {
		if !strings.HasPrefix(request, url) && !strings.HasPrefix(request, "data:") && !strings.HasPrefix(request, "blob:") {
			t.Errorf("the site asks another host: %s", request)
		}
	}
}
