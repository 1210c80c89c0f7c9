// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// opened runs hookgate dashboard with flags, and returns a browser that has opened the link for its buttons, the
// address of the actions, and the page.
func opened(t *testing.T, flags ...string) (browser *http.Client, actions, page string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, errOut, done := make(commandtest.Announced, 1), make(commandtest.Announced, 100), make(chan int)
	go func() {
		done <- commandtest.Run(ctx, append([]string{"dashboard", "--browser=false"}, flags...), strings.NewReader(""), out, errOut,
			func(string) (string, bool) { return "", false })
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != cmdline.ExitDone {
			t.Errorf("ended with status %d", code)
		}
	})
	said := ""
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\?code=\w+`)
	for !link.MatchString(said) {
		said += <-errOut
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser = &http.Client{Jar: jar}
	_, page = visit(t, browser, link.FindString(said), nil)
	return browser, link.FindStringSubmatch(said)[1], page
}

// visit gets a page, and sends a form to it if there is one.
func visit(t *testing.T, browser *http.Client, link string, form url.Values) (code int, body string) {
	t.Helper()
	send := func() (*http.Response, error) { return browser.Get(link) }
	if form != nil {
		send = func() (*http.Response, error) { return browser.PostForm(link, form) }
	}
	response, err := send()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, html.UnescapeString(string(text))
}

// A request is explained, and a recording asked for, by the gateway whose page it is.
func TestDashboardExplainsAndRecords(t *testing.T) {
	t.Chdir(t.TempDir()) // where recordings are written
	g := commandtest.NewClusterGateway(t, commandtest.NewPatcher(t, commandtest.PatchReply(`{}`), commandtest.PatchReply(`{}`)))
	browser, actions, page := opened(t, "--kubeconfig", g.Kubeconfig, "--ca", g.CA)
	if !strings.Contains(page, "red") {
		t.Errorf("the page that the link leads to: %s", page)
	}
	_, body := visit(t, browser, actions+"/explain?cluster=teams%2Fc", nil)
	for _, want := range []string{"name: c\n", "namespace: teams\n", "kind: Cluster\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("the form lacks %q: %s", want, body)
		}
	}
	token := regexp.MustCompile(`name="token" value="(\w+)"`)
	form := url.Values{"cluster": {"teams/c"}, "token": {token.FindStringSubmatch(body)[1]}, "hook": {"GeneratePatches"}, "request": {commandtest.PatchesRequest}}
	if _, body = visit(t, browser, actions+"/explain", form); !strings.Contains(body, "TURN") || !strings.Contains(body, "platform") {
		t.Errorf("the explanation: %s", body)
	}
	form.Set("hook", "GeneratePatchs")
	if _, body = visit(t, browser, actions+"/explain", form); !strings.Contains(body, "did you mean GeneratePatches?") {
		t.Errorf("a hook that there is not: %s", body)
	}
	_, body = visit(t, browser, actions+"/record?handler=none.acme", nil)
	form = url.Values{"handler": {"none.acme"}, "token": {token.FindStringSubmatch(body)[1]}, "for": {"1m0s"}}
	if _, body = visit(t, browser, actions+"/record", form); !strings.Contains(body, "HTTP 404") {
		t.Errorf("a recording of a handler that there is not: %s", body)
	}
}

// A gateway that no kubeconfig has named may be of another cluster than the current one.
func TestDashboardDoesNotGuessTheCluster(t *testing.T) {
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	t.Setenv("KUBECONFIG", g.Kubeconfig)
	browser, actions, _ := opened(t, "--diagnostics", "http://"+g.Address)
	for path, code := range map[string]int{"/lift?handler=a.acme&hook=BeforeClusterCreate&cluster=n%2Fc": http.StatusNotFound, "/record?handler=a.acme": http.StatusOK} {
		if got, _ := visit(t, browser, actions+path, nil); got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
	}
}
