// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
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
