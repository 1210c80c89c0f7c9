// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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
	clientCA := x509.NewCertPool()
	clientCA.AppendCertsFromPEM(a.PEM)

	cases := map[string]struct {
		reason string
		cc     registry.ClientConfig
		lookup func(context.Context, string) ([]netip.Addr, error)
		kind   hook.Kind // Unreachable if zero
		want   string
	}{
		"refused": {
			reason: "no server listens",
			cc:     atHost(good.cc, "127.0.0.9"),
			want:   "connection refused",
		},
		"no such host": {
			reason: "the name does not exist",
			cc:     atHost(good.cc, "nobody.example"),
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "nobody.example", Server: "10.0.0.1:53", IsNotFound: true}
			},
			want: "host name not found",
		},
		"no address": {
			reason: "the name has no addresses",
			cc:     atHost(good.cc, "nobody.example"),
			lookup: resolver(),
			want:   "host name not found",
		},
		"resolver": {
			reason: "the resolver has a fault",
			cc:     atHost(good.cc, "ext.example"),
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "server misbehaving", Name: "ext.example", Server: "10.0.0.1:53"}
			},
			want: "host name lookup did not work",
		},
		"unknown authority": {
			reason: "another CA",
			cc:     registry.ClientConfig{URL: good.URL, CABundle: other.PEM},
			want:   "certificate not trusted: signed by an unknown authority",
		},
		"system roots": {
			reason: "no CA means the system's, which do not know ours",
			cc:     registry.ClientConfig{URL: good.URL},
			want:   "certificate not trusted: signed by an unknown authority",
		},
		"wrong host": {
			reason: "the certificate is for other names",
			cc:     atHost(good.cc, "other.example"),
			lookup: resolver("127.0.0.1"),
			want:   `certificate not trusted: not made out to "other.example"`,
		},
		"expired": {
			reason: "the text must not have the time in it",
			cc: withTLS(func(c *tls.Config) {
				c.Certificates = []tls.Certificate{issue(t, a, time.Now().Add(-time.Minute))}
			}),
			want: "certificate not trusted: expired or not yet valid",
		},
		"client certificate": {
			reason: "the server wants to know who calls",
			cc: withTLS(func(c *tls.Config) {
				c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, clientCA, tls.VersionTLS12
			}),
			want: "TLS handshake refused: handshake failure",
		},
		"old TLS": {
			reason: "TLS 1.1 is not spoken any more",
			cc:     withTLS(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
			want:   "TLS handshake refused: protocol version not supported",
		},
		"no TLS": {
			reason: "HTTP without S",
			cc:     registry.ClientConfig{URL: "https://" + plain.Listener.Addr().String()},
			want:   "the server does not speak TLS",
		},
		"bad CA": {
			reason: "a caBundle without a certificate",
			cc:     registry.ClientConfig{URL: good.URL, CABundle: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")},
			want:   "caBundle: no valid certificate in PEM in it",
		},
		"bad URL": {
			reason: "not https",
			cc:     registry.ClientConfig{URL: "http://127.0.0.1"},
			want:   `url: must begin with https://, not with "http"`,
		},
		"closed": {
			reason: "the request was read, so that it is not sent again",
			cc:     rawServer(t, a, func(c net.Conn) { _ = readRequest(c) }),
			want:   "connection closed without an answer",
		},
		"reset": {
			reason: "the same with a reset",
			cc: rawServer(t, a, func(c net.Conn) {
				_ = readRequest(c)
				tcp := c.(*tls.Conn).NetConn().(*net.TCPConn)
				_ = tcp.SetLinger(0)
				_ = tcp.Close()
			}),
			want: "connection reset",
		},
		"not HTTP": {
			reason: "another protocol over TLS",
			cc: rawServer(t, a, func(c net.Conn) {
				_ = readRequest(c)
				_, _ = io.WriteString(c, "+OK POP3 ready\r\n")
			}),
			kind: hook.BadResponse,
			want: "answer is not HTTP",
		},
		"large header": {
			reason: "headers are capped, too",
			cc: rawServer(t, a, func(c net.Conn) {
				_ = readRequest(c)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				line := "X: " + strings.Repeat("x", 10_000) + "\r\n"
				for {
					if _, err := io.WriteString(c, line); err != nil {
						return
					}
				}
			}),
			kind: hook.BadResponse,
			want: "header of the answer is larger than 65536 bytes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newREST(t, Config{LookupHost: tc.lookup})
			kind := tc.kind
			if kind == hook.Internal {
				kind = hook.Unreachable
			}
			var texts []string
			for range 2 { // the text is the same every time
				m, err := call(t.Context(), r, newCall(tc.cc))
				wantError(t, tc.reason, m, err, kind, `handler "v.acme": call extension: `+tc.want)
				texts = append(texts, err.Error())
			}
			if texts[0] != texts[1] {
				t.Errorf("%s: two texts: %v", tc.reason, texts)
			}
		})
	}
}

func TestRequestsThatWereReadAreNotSentAgain(t *testing.T) {
	var requests atomic.Int32
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		if readRequest(c) == nil {
			requests.Add(1)
		}
	})
	if _, err := newREST(t, Config{}).Call(t.Context(), newCall(cc)); hook.KindOf(err) != hook.Unreachable {
		t.Errorf("got %v, want Unreachable", err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the request was sent %d times, want once", n)
	}
}

func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var lookups atomic.Int32
	fails := int32(2)
	r := newREST(t, Config{LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		if lookups.Add(1) <= fails {
			return []netip.Addr{netip.MustParseAddr("127.0.0.9")}, nil // the server is not there
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	mustCall(t, r, atHost(s.cc, "ext.example"))
	if n := lookups.Load(); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}

	r.Close() // forget the connection
	lookups.Store(0)
	fails = 3
	m, err := call(t.Context(), r, newCall(atHost(s.cc, "ext.example")))
	wantError(t, "twice is enough", m, err, hook.Unreachable, `handler "v.acme": call extension: connection refused`)
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
