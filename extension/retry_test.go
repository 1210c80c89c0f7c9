// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Only a failure that may have passed a moment later is worth a second attempt, and there is never a third.
func TestAttemptsByFailureOfTheLookup(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	at := func(address string) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(address)}, nil }
	}
	fails := func(err error) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) { return nil, err }
	}
	for name, tc := range map[string]struct {
		reason string
		answer func() ([]netip.Addr, error)
		want   int32
	}{
		"refused":        {"the extension may be restarting", at("127.0.0.9"), 2},
		"lookup fault":   {"the resolver may recover", fails(&net.DNSError{Err: "server misbehaving"}), 2},
		"lookup timeout": {"the resolver may recover", fails(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), 2},
		"unknown host":   {"a name does not appear within a moment", fails(&net.DNSError{Err: "no such host", IsNotFound: true}), 1},
		"no address":     {"nor does an address", func() ([]netip.Addr, error) { return nil, nil }, 1},
		"forbidden":      {"the address stays forbidden", at("169.254.169.254"), 1},
		"untrusted":      {"the certificate stays what it is", at("127.0.0.1"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var lookups atomic.Int32
			r := newREST(t, Config{LookupHost: func(context.Context, string) ([]netip.Addr, error) {
				lookups.Add(1)
				return tc.answer()
			}})
			cc := atHost(s.cc, "ext.example")
			cc.CABundle = nil // the system's roots do not know the server
			if _, err := call(t.Context(), r, newCall(cc)); hook.KindOf(err) != hook.Unreachable {
				t.Fatalf("%s: got %v, want Unreachable", tc.reason, err)
			}
			if n := lookups.Load(); n != tc.want {
				t.Errorf("%s: %d attempts, want %d", tc.reason, n, tc.want)
			}
		})
	}
}

// A caller that has left, or whose time is up, gets no second attempt.
func TestNoAttemptAfterTheEndOfTheContext(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lookups atomic.Int32
	r := newREST(t, Config{LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		lookups.Add(1)
		cancel()
		return nil, &net.DNSError{Err: "server misbehaving"}
	}})
	m, err := call(ctx, r, newCall(atHost(s.cc, "ext.example")))
	wantError(t, "the caller leaves during the first attempt", m, err, hook.Canceled,
		`handler "v.acme": call extension: the caller left`)
	if n := lookups.Load(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

// Once a connection carries the request, the extension may have processed it, however the connection ends.
func TestNoSecondAttemptOnAConnectionThatBroke(t *testing.T) {
	for name, breakOff := range map[string]func(net.Conn){
		"closed": func(c net.Conn) { _ = c.Close() },
		"reset": func(c net.Conn) {
			tcp := c.(*tls.Conn).NetConn().(*net.TCPConn)
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		},
		"half a status line": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 20") },
	} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			cc := rawServer(t, newAuthority(t), func(c net.Conn) {
				connections.Add(1)
				if readRequest(c) == nil {
					breakOff(c)
				}
			})
			if m, err := call(t.Context(), newREST(t, Config{}), newCall(cc)); m != nil || err == nil {
				t.Errorf("got %v, %v; want an error", m, err)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections, want 1: the request was sent again", n)
			}
		})
	}
}

// A status code is an answer, whatever it says: 503 and 429 are not tried again.
func TestNoSecondAttemptAfterAStatusCode(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var requests atomic.Int32
		s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
			requests.Add(1)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			answer("")(w, req)
		}, nil)
		if _, err := call(t.Context(), newREST(t, Config{}), newCall(s.cc)); hook.KindOf(err) != hook.BadResponse {
			t.Errorf("%d: got %v, want BadResponse", code, err)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d: %d requests, want 1", code, n)
		}
	}
}

// A server that refuses HTTP/1.1 and then HTTP/2 as well is asked for each once, and once more for the failure itself.
func TestAServerThatRefusesEveryProtocol(t *testing.T) {
	var offered [][]string
	s := newServer(t, newAuthority(t), answer(success), func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			offered = append(offered, hello.SupportedProtos)
			config := s.TLS.Clone()
			config.NextProtos = []string{"other"}
			return config, nil
		}
	})
	m, err := call(t.Context(), newREST(t, Config{}), newCall(s.cc))
	wantError(t, "it speaks nothing that the gateway does", m, err, hook.Unreachable,
		`handler "v.acme": call extension: TLS handshake refused: no application protocol`)
	if len(offered) != 2 || slices.Contains(offered[0], "h2") || !slices.Contains(offered[1], "h2") {
		t.Errorf("offered %v, want HTTP/1.1 and then HTTP/2 too", offered)
	}
}

// gRPC repeats no call that has reached the server: what it answered is the answer.
func TestGRPCAsksOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Aborted, codes.ResourceExhausted} {
		var calls atomic.Int32
		cc := newAuthor(t, newAuthority(t), &author{create: func(
			context.Context, *hooksv1alpha1.BeforeClusterCreateRequest,
		) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			calls.Add(1)
			return nil, status.Error(code, "later")
		}}, nil)
		if m, err := callGRPC(t.Context(), newGRPC(t, Config{}), newCall(cc)); m != nil || err == nil {
			t.Errorf("%s: got %v, %v", code, m, err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls, want 1", code, n)
		}
	}
}

// A connection that never carried the request leaves the call free to use another.
func TestUnsent(t *testing.T) {
	closedIdle := errors.New("http: server closed idle connection")
	for name, tc := range map[string]struct {
		connected bool
		err       error
		want      bool
	}{
		"no connection":             {false, io.EOF, true},
		"kept connection closed":    {true, closedIdle, true},
		"connection, then EOF":      {true, io.EOF, false},
		"connection, then timeout":  {true, context.DeadlineExceeded, false},
		"no connection in time":     {false, context.DeadlineExceeded, true},
		"text in the middle of one": {true, errors.New("http: server closed idle connection: again"), false},
	} {
		a := &attempt{}
		a.connected.Store(tc.connected)
		if got := a.unsent(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
