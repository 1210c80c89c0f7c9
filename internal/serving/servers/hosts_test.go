// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/recording"
)

func TestLocalHosts(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8443}
	for _, tc := range []struct {
		reason, configured string
		bound              net.Addr
		host               string
		code               int
	}{
		{"the address itself", "127.0.0.1:8443", loopback, "127.0.0.1:8443", 200},
		{"a forwarded port", "127.0.0.1:8443", loopback, "localhost:12345", 200},
		{"a name may end in a dot, in any case", "127.0.0.1:8443", loopback, "LocalHost.", 200},
		{"all of 127.0.0.0/8", "127.0.0.1:8443", loopback, "127.1.2.3", 200},
		{"IPv6", "[::1]:8443", &net.TCPAddr{IP: net.IPv6loopback}, "[::1]:8443", 200},
		{"IPv6 without a port", "[::1]:8443", &net.TCPAddr{IP: net.IPv6loopback}, "[::1]", 200},
		{"HTTP/1.0", "127.0.0.1:8443", loopback, "", 200},
		{"a name that the flag has", "laptop.example:8443", loopback, "laptop.example:8443", 200},
		{"DNS rebinding", "127.0.0.1:8443", loopback, "evil.example:8443", 421},
		{"a name that begins as another", "127.0.0.1:8443", loopback, "127.0.0.1.evil.example:8443", 421},
		{"a name that begins as localhost", "127.0.0.1:8443", loopback, "localhost.evil.example", 421},
		{"another address", "127.0.0.1:8443", loopback, "10.0.0.1:8443", 421},
		{"an empty host in the flag is no wildcard", ":8443", loopback, "evil.example:8443", 421},
		{"not on loopback", "10.0.0.1:8443", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, "metrics.example:8443", 200},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := LocalHosts(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), tc.configured, tc.bound)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = tc.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.code {
				t.Errorf("Host %q at %s (%s): %d, want %d: %s", tc.host, tc.configured, tc.bound, w.Code, tc.code, w.Body)
			}
		})
	}
}

// Pages of other sites, and of other ports of this machine, neither change nor read anything at the diagnostics address.
func TestDiagnosticsRefuseOtherSites(t *testing.T) {
	answers := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	r := startServer(t, answers, func(c *Config) {
		c.Status, c.Recording, c.Console, c.Metrics = answers, answers, answers, answers
	})
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, tc := range []struct {
		reason, method string
		header         http.Header
		code           int
	}{
		{"a program", http.MethodPost, nil, http.StatusOK},
		{"the page itself", http.MethodPost, header("Sec-Fetch-Site", "same-origin", "Origin", "http://"+r.diagnostics), http.StatusOK},
		{"another site", http.MethodPost, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), http.StatusForbidden},
		{"a form of another site", http.MethodPost, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), http.StatusForbidden},
		{"another port", http.MethodPost, header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"), http.StatusForbidden},
		{"an older browser", http.MethodPost, header("Origin", "https://evil.example"), http.StatusForbidden},
		{"a page without an origin", http.MethodPost, header("Origin", "null"), http.StatusForbidden},
		{"a program that reads", http.MethodGet, nil, http.StatusOK},
		{"a link", http.MethodGet, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), http.StatusOK},
		{"a person", http.MethodGet, header("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), http.StatusOK},
		{"reading from another site", http.MethodGet, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"), http.StatusForbidden},
		{"a script of another site", http.MethodGet, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), http.StatusForbidden},
	} {
		paths := []string{status.Path, "/metrics", "/readyz", "/"}
		if tc.method == http.MethodPost {
			paths = []string{recording.Path}
		}
		for _, path := range paths {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+r.diagnostics+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = tc.header.Clone()
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if code := resp.StatusCode; code != tc.code && (path != "/readyz" || code != http.StatusServiceUnavailable || tc.code != http.StatusOK) {
				t.Errorf("%s: %s %s: %d, want %d", tc.reason, tc.method, path, code, tc.code)
			}
		}
	}
}
