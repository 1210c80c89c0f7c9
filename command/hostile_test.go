// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
)

// answerRaw starts a server that answers each connection with a text, whatever it is asked, and returns its URL.
func answerRaw(t *testing.T, answer string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestErrorsDoNotControlTheTerminal has servers that put sequences for terminals wherever an error shows something of an
// answer.
func TestErrorsDoNotControlTheTerminal(t *testing.T) {
	const escape = "\x1b[2J\u202e"
	for name, answer := range map[string]string{
		"Status": "HTTP/1.1 500 " + escape + "\r\nContent-Length: 0\r\n\r\n",
		"Kind":   "HTTP/1.1 500 x\r\nHookgate-Error-Kind: " + escape + "\r\nContent-Length: 0\r\n\r\n",
		"Body":   "HTTP/1.1 500 x\r\nContent-Length: " + "9" + "\r\n\r\n" + escape[:4] + "12345",
		"Line":   escape + "\r\n\r\n",
		"Long":   "HTTP/1.1 500 " + strings.Repeat("x", 1<<19) + "\r\nContent-Length: 0\r\n\r\n",
	} {
		url := answerRaw(t, answer)
		for _, args := range [][]string{
			{"get", "extensions", "--diagnostics", url}, {"describe", "acme", "--diagnostics", url},
			{"get", "holds", "--diagnostics", url}, {"dashboard", "--browser=false", "--diagnostics", url},
			{"call", "Discovery", "--server", url},
		} {
			got := commandtest.Hookgate(t, "", args...)
			if got.Code == cmdline.ExitDone || strings.ContainsAny(got.ErrOut+got.Out, "\x1b\u202e") || len(got.ErrOut) > 32<<10 {
				t.Errorf("%s, %v: %d bytes, %.200q", name, args, len(got.ErrOut), got.ErrOut)
			}
		}
	}
}

// statusOf starts a server whose status is a text.
func statusOf(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(s.Close)
	return s.URL
}

// TestHostileStatuses has statuses of some MiB that would take gigabytes once they are decoded, or printed.
func TestHostileStatuses(t *testing.T) {
	const began = `{"now":"2026-01-02T03:04:05Z",`
	deep := strings.Repeat("[", 5000) + strings.Repeat("1,", 1_000_000) + "1" + strings.Repeat("]", 5000)
	for name, tt := range map[string]struct {
		status string
		args   []string
		want   string // a part of what is printed; empty for an error
	}{
		"Objects": {began + `"extensions":[` + strings.Repeat("{},", 4_000_000) + `{}]}`, []string{"get", "extensions"}, ""},
		"Values":  {began + `"extensions":[{"handlers":[{"lost":[` + strings.Repeat(`"",`, 4_000_000) + `""]}]}]}`, []string{"describe", "x"}, ""},
		"Wide": {
			began + `"extensions":[` + strings.Repeat("{},", 50_000) + `{"url":"` + strings.Repeat("x", 1<<20) + `"}]}`,
			[]string{"get", "extensions", "-o", "wide"}, "NAME",
		},
		"Rows": {
			began + `"extensions":[{"handlers":[{"lost":[` + strings.Repeat(`"",`, 500_000) + `""]}]}]}`,
			[]string{"describe", "x"}, "more rows)",
		},
		"DeepJSON": {began + `"extensions":[{}],"more":` + deep + `}`, []string{"describe", "x", "-o", "json"}, "[1,1,1,"},
		"DeepYAML": {began + `"extensions":[{}],"more":` + deep + `}`, []string{"describe", "x", "-o", "yaml"}, ""},
		"ManyYAML": {began + `"extensions":[{}],"more":[` + strings.Repeat("1,", 1_500_000) + `1]}`, []string{"describe", "x", "-o", "yaml"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url := statusOf(t, tt.status)
			alloctest.Bound{Base: 1 << 30}.Check(t, 0, func() {
				got := commandtest.Hookgate(t, "", append(tt.args, "--diagnostics", url)...)
				if (got.Code == cmdline.ExitDone) != (tt.want != "") || !strings.Contains(got.Out, tt.want) || tt.want == "" && got.ErrOut == "" {
					t.Errorf("status %d, %.300s", got.Code, got.ErrOut)
				}
			})
		})
	}
}

// TestCompletionsAreNames completes names of a gateway that a shell, or a terminal, could take for more.
func TestCompletionsAreNames(t *testing.T) {
	g := &status.Gateway{Now: time.Now()}
	for _, name := range []string{"acme", "$(touch pwned)", "a b", "a\nb", "\x1b[2J", "_activeHelp_ call 0900-1", "`id`", "é", "gate.acme"} {
		g.Extensions = append(g.Extensions, status.Extension{Name: name})
	}
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	got := commandtest.Hookgate(t, "", cobra.ShellCompNoDescRequestCmd, "describe", "--diagnostics", statusOf(t, string(text)), "")
	if want := "acme\ngate.acme\n:4\n"; got.Out != want {
		t.Errorf("got %q, want %q", got.Out, want)
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
	h := forward(c, "127.0.0.1:1")
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
