// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/command/internal/ask"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
)

// TestDashboard opens the page of a gateway in a cluster, in a program that stands for the browser of the desktop.
func TestDashboard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser is opened by xdg-open on Linux only")
	}
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	opened := filepath.Join(t.TempDir(), "opened")
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" > "+opened+".new\nmv "+opened+".new "+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, browser := range []string{"true", "false"} {
		t.Run("Browser="+browser, func(t *testing.T) {
			_ = os.Remove(opened)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out, done := make(commandtest.Announced, 1), make(chan int)
			var says bytes.Buffer
			go func() {
				done <- commandtest.Run(ctx, []string{"dashboard", "--kubeconfig", g.Kubeconfig, "--browser=" + browser}, strings.NewReader(""),
					out, &says, func(string) (string, bool) { return "", false })
			}()
			var page string
			select {
			case line := <-out:
				page = strings.TrimSpace(line)
			case code := <-done:
				t.Fatalf("ended with status %d", code)
			}
			checkPage(t, page)
			if browser == "true" {
				for {
					if url, err := os.ReadFile(opened); err == nil {
						if strings.TrimSpace(string(url)) != page {
							t.Errorf("the browser got %s, want %s", url, page)
						}
						break
					}
					time.Sleep(10 * time.Millisecond) // until t's deadline
				}
			}
			stop()
			if code := <-done; code != cmdline.ExitDone || !strings.Contains(says.String(), "The page is served until Ctrl-C.\n") {
				t.Errorf("ended with status %d: %s", code, &says)
			}
			if _, err := os.Stat(opened); (err == nil) != (browser == "true") {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

// checkPage checks that the page is that of the gateway, and that only its readers are answered.
func checkPage(t *testing.T, page string) {
	t.Helper()
	for name, tt := range map[string]struct {
		method, host string
		code         int
		want         string
	}{
		"Page":        {http.MethodGet, "", http.StatusOK, "acme"},
		"Write":       {http.MethodPost, "", http.StatusMethodNotAllowed, ""},
		"ForeignName": {http.MethodGet, "rebound.example", http.StatusMisdirectedRequest, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = tt.host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != tt.code || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: %d, want %d; %v\n%s", name, response.StatusCode, tt.code, err, body)
		}
	}
}

func TestDashboardFails(t *testing.T) {
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus) // which has no page
	got := commandtest.Hookgate(t, "", "dashboard", "--diagnostics", s.URL, "--browser=false")
	if got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, "has no page: it runs with --ui=false") {
		t.Errorf("%+v", got)
	}
	if got = commandtest.Hookgate(t, "", "dashboard", "--diagnostics", "http://127.0.0.1:1"); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, "Is the gateway running") {
		t.Errorf("%+v", got)
	}
}

// TestDashboardPassesOnLittle has a gateway whose answers would count for other programs on this machine, or later.
func TestDashboardPassesOnLittle(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Set-Cookie": "session=x", "Clear-Site-Data": `"*"`, "Service-Worker-Allowed": "/", "Location": "https://elsewhere.example",
			"Access-Control-Allow-Origin": "*", "Content-Type": "text/html", "Content-Security-Policy": "default-src 'none'",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "page")
	}))
	t.Cleanup(gateway.Close)
	var o target.StatusOptions
	o.Server, o.Timeout = gateway.URL, time.Minute
	c, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h := ask.Forward(c, "127.0.0.1:1", "1 lift")
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	for name := range w.Header() {
		switch name {
		case "Content-Type", "Content-Security-Policy", "Content-Length":
		default:
			t.Errorf("the browser gets the header %s: %s", name, w.Header().Get(name))
		}
	}
	if w.Body.String() != "page" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	r.Header.Set("Service-Worker", "script")
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("a service worker: %d", w.Code)
	}
}
