// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// resolver returns a LookupHost that knows one answer.
func resolver(addresses ...string) func(context.Context, string) ([]netip.Addr, error) {
	var parsed []netip.Addr
	for _, a := range addresses {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return func(context.Context, string) ([]netip.Addr, error) { return parsed, nil }
}

// atHost returns cc with another host name, on the same port.
func atHost(cc registry.ClientConfig, host string) registry.ClientConfig {
	_, port, _ := strings.Cut(strings.TrimPrefix(cc.URL, "https://"), ":")
	cc.URL = "https://" + host + ":" + port
	return cc
}

func TestConnectionsThatFail(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	good := newServer(t, a, answer(success), nil)
	withTLS := func(change func(*tls.Config)) registry.ClientConfig {
		return newServer(t, a, answer(success), func(s *httptest.Server) { change(s.TLS) }).cc
	}
	plain := httptest.NewServer(answer(success))
	t.Cleanup(plain.Close)
	expired := func(c *tls.Config) { c.Certificates = []tls.Certificate{issue(t, a, time.Now().Add(-time.Minute))} }
	old := func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }
	faulty := func(context.Context, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: "ext.example", Server: "10.0.0.1:53"}
	}
	const noCertificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"

	for name, tc := range map[string]struct {
		reason string
		cc     registry.ClientConfig
		lookup func(context.Context, string) ([]netip.Addr, error)
		want   string // its other texts are those of connect.Classify
	}{
		"refused":           {"no server listens", atHost(good.cc, "127.0.0.9"), nil, "connection refused"},
		"no address":        {"the name has no addresses", atHost(good.cc, "nobody.example"), resolver(), "host name not found"},
		"resolver":          {"the resolver has a fault", atHost(good.cc, "ext.example"), faulty, "host name lookup did not work"},
		"unknown authority": {"another CA", registry.ClientConfig{URL: good.URL, CABundle: other.PEM}, nil, "certificate not trusted: signed by an unknown authority"},
		"system roots":      {"no CA means the system's, which do not know ours", registry.ClientConfig{URL: good.URL}, nil, "certificate not trusted: signed by an unknown authority"},
		"wrong host":        {"the certificate is for other names", atHost(good.cc, "other.example"), resolver("127.0.0.1"), `certificate not trusted: not valid for "other.example"`},
		"expired":           {"the text must not have the time in it", withTLS(expired), nil, "certificate not trusted: expired or not yet valid"},
		"old TLS":           {"TLS 1.1 is not spoken any more", withTLS(old), nil, "TLS handshake refused: protocol version not supported"},
		"no TLS":            {"HTTP without S", registry.ClientConfig{URL: "https://" + plain.Listener.Addr().String()}, nil, "the server does not speak TLS"},
		"bad CA":            {"a caBundle without a certificate", registry.ClientConfig{URL: good.URL, CABundle: []byte(noCertificate)}, nil, "caBundle: contains no valid PEM certificate"},
		"bad URL":           {"not https", registry.ClientConfig{URL: "http://127.0.0.1"}, nil, `url: must begin with https://, not with "http"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newREST(t, Config{LookupHost: tc.lookup})
			for range 2 { // the text is the same every time
				m, err := call(t.Context(), r, newCall(tc.cc))
				wantError(t, tc.reason, m, err, hook.Unreachable, `handler "v.acme": call extension: `+tc.want)
			}
		})
	}
}

func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var lookups atomic.Int32
	r := newREST(t, Config{RestartWait: patience, LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		if lookups.Add(1) <= 2 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.9")}, nil // the server is not there
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	mustCall(t, r, atHost(s.cc, "ext.example"))
	if n := lookups.Load(); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
}

// TestAKeptConnectionThatTheServerClosed has the server close a kept connection: while it is idle, and, which net/http
// lets a test do, at the worst moment, after it was chosen for a request, and before the request is on it.
func TestAKeptConnectionThatTheServerClosed(t *testing.T) {
	for _, when := range []string{"while it was idle", "while it was idle, net/http", "when it was chosen, net/http"} {
		t.Run(when, func(t *testing.T) {
			connections := make(chan net.Conn, 2)
			cc := rawServer(t, newAuthority(t), func(c net.Conn) {
				connections <- c
				if readRequest(c) == nil {
					_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(success), success)
				}
				_, _ = c.Read(make([]byte, 1))
			})
			r := newREST(t, Config{})
			rt, err := r.routes.get(cc)
			if err != nil {
				t.Fatal(err)
			}
			p := rt.host.acquire(r.now())
			defer p.release()
			if when != "while it was idle" {
				p.useNetHTTP()
			}
			mustCall(t, r, cc)

			// seen reports whether the client has seen that its only connection was closed.
			seen := func() bool {
				if p.http1 != nil {
					c := p.http1.takeIdle()
					defer p.http1.put(c)
					return !c.isAlive()
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.conns) == 0
			}
			hangUp := func() {
				_ = (<-connections).Close()
				for deadline := time.Now().Add(patience); !seen(); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Error("the client does not see that the server has closed")
						return
					}
				}
			}
			ctx, reused := t.Context(), false
			if when != "when it was chosen, net/http" {
				hangUp()
			} else {
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					if info.Reused {
						reused = true
						hangUp()
					}
				}})
			}
			if _, err := r.Call(ctx, newCall(cc)); err != nil {
				t.Errorf("Call: %v (%v)", err, errors.Unwrap(err))
			}
			if when == "when it was chosen, net/http" && !reused {
				t.Error("the closed connection was not chosen, so that nothing was tested")
			}
		})
	}
}

// useNetHTTP makes a pool without connections leave HTTP/1.1 to net/http.
func (p *pool) useNetHTTP() { p.http1, p.transports = nil, []*http.Transport{p.newTransport()} }

func TestServersThatOnlySpeakHTTP2(t *testing.T) {
	var handshakes atomic.Int32
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != 2 {
			t.Errorf("protocol %s", req.Proto)
		}
		answer(success)(w, req)
	}, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			handshakes.Add(1)
			config := s.TLS.Clone()
			config.NextProtos = []string{"h2"}
			if !slices.Contains(hello.SupportedProtos, "h2") {
				// Go's servers would go on without a protocol; with this one, they refuse like others.
				config.NextProtos = []string{"h2-only"}
			}
			return config, nil
		}
	})
	r := newREST(t, Config{})
	for range 3 * http2Connections {
		mustCall(t, r, s.cc)
	}
	if n := handshakes.Load(); n != 1+http2Connections {
		t.Errorf("%d handshakes for %d calls; want one that is refused and %d", n, 3*http2Connections, http2Connections)
	}
}

func TestProtocolThatIsPreferred(t *testing.T) {
	for _, prefer := range []bool{false, true} {
		var got int
		s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
			got = req.ProtoMajor
			answer(success)(w, req)
		}, func(s *httptest.Server) { s.EnableHTTP2 = true })
		mustCall(t, newREST(t, Config{PreferHTTP2: prefer}), s.cc)
		if want := map[bool]int{false: 1, true: 2}[prefer]; got != want {
			t.Errorf("PreferHTTP2 %t: HTTP/%d, want HTTP/%d", prefer, got, want)
		}
	}
}
