// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// Only a failure that may have passed a moment later is worth other attempts.
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
		again  bool
	}{
		"refused":        {"the extension may be restarting", at("127.0.0.9"), true},
		"lookup fault":   {"the resolver may recover", fails(&net.DNSError{Err: "server misbehaving"}), true},
		"lookup timeout": {"the resolver may recover", fails(&net.DNSError{Err: "i/o timeout", IsTimeout: true}), true},
		"dial timeout":   {"the next address may answer", fails(os.ErrDeadlineExceeded), true},
		"unknown host":   {"a name does not appear within a moment", fails(&net.DNSError{Err: "no such host", IsNotFound: true}), false},
		"no address":     {"nor does an address", func() ([]netip.Addr, error) { return nil, nil }, false},
		"forbidden":      {"the address stays forbidden", at("169.254.169.254"), false},
		"untrusted":      {"the certificate stays what it is", at("127.0.0.1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var lookups atomic.Int32
			r := newREST(t, Config{RestartWait: 200 * time.Millisecond, LookupHost: func(context.Context, string) ([]netip.Addr, error) {
				lookups.Add(1)
				return tc.answer()
			}})
			cc := atHost(s.cc, "ext.example")
			cc.CABundle = nil // the system's roots do not know the server
			if _, err := call(t.Context(), r, newCall(cc)); hook.KindOf(err) != hook.Unreachable {
				t.Fatalf("%s: got %v, want Unreachable", tc.reason, err)
			}
			if n := lookups.Load(); (n > 1) != tc.again {
				t.Errorf("%s: %d attempts, want others %t", tc.reason, n, tc.again)
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

// reset breaks a connection off with a reset.
func reset(c net.Conn) {
	tcp := c.(*tls.Conn).NetConn().(*net.TCPConn)
	_ = tcp.SetLinger(0)
	_ = tcp.Close()
}

// Once a connection carries the request, the extension may have processed it, however the connection ends.
func TestNoSecondAttemptOnAConnectionThatBroke(t *testing.T) {
	for name, tc := range map[string]struct {
		breakOff func(net.Conn)
		kind     hook.Kind
		want     string
	}{
		"closed":             {func(c net.Conn) { _ = c.Close() }, hook.Unreachable, "connection closed without an answer"},
		"reset":              {reset, hook.Unreachable, "connection reset"},
		"another protocol":   {func(c net.Conn) { _, _ = io.WriteString(c, "+OK POP3 ready\r\n") }, hook.BadResponse, "answer is not HTTP"},
		"half a status line": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 20") }, hook.BadResponse, "answer is not HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			cc := rawServer(t, newAuthority(t), func(c net.Conn) {
				connections.Add(1)
				if readRequest(c) == nil {
					tc.breakOff(c)
				}
			})
			m, err := call(t.Context(), newREST(t, Config{}), newCall(cc))
			wantError(t, name, m, err, tc.kind, `handler "v.acme": call extension: `+tc.want)
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections, want 1: the request was sent again", n)
			}
		})
	}
}

// A status code is an answer. Only 503 with a Retry-After asks for the same request again, and it gets it if that is
// within the deadline.
func TestAttemptsByStatusCode(t *testing.T) {
	future := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for name, tc := range map[string]struct {
		code       int
		retryAfter []string
		want       int32
	}{
		"503":           {http.StatusServiceUnavailable, nil, 1},
		"AtOnce":        {http.StatusServiceUnavailable, []string{"0"}, 3},
		"Past":          {http.StatusServiceUnavailable, []string{past}, 3},
		"BeyondTimeout": {http.StatusServiceUnavailable, []string{"30"}, 1}, // the timeout of the handler
		"Future":        {http.StatusServiceUnavailable, []string{future}, 1},
		"Negative":      {http.StatusServiceUnavailable, []string{"-1"}, 1},
		"Huge":          {http.StatusServiceUnavailable, []string{"99999999999999999999"}, 1},
		"Text":          {http.StatusServiceUnavailable, []string{"soon"}, 1},
		"429":           {http.StatusTooManyRequests, []string{"0"}, 1},
		"500":           {http.StatusInternalServerError, []string{"0"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
				requests.Add(1)
				w.Header()["Retry-After"] = tc.retryAfter
				w.WriteHeader(tc.code)
				answer("")(w, req)
			}, nil)
			if _, err := call(t.Context(), newREST(t, Config{}), newCall(s.cc)); hook.KindOf(err) != hook.BadResponse {
				t.Errorf("got %v, want BadResponse", err)
			}
			if n := requests.Load(); n != tc.want {
				t.Errorf("%d requests, want %d", n, tc.want)
			}
		})
	}
}

// A large call succeeds after the extension has asked for time, and is sent whole each time.
func TestSuccessAfterServiceUnavailable(t *testing.T) {
	var sizes []int64
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		if sizes = append(sizes, n); len(sizes) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, success)
	}, nil)
	c := largeCall(s.cc)
	result, err := newREST(t, Config{}).Call(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(sizes) != 3 || sizes[0] != sizes[1] || sizes[1] != sizes[2] || result.Sent != sizes[2] {
		t.Errorf("the requests have %v bytes, of which %d count as sent", sizes, result.Sent)
	}
}

// largeCall returns a call whose body is not sent in one piece.
func largeCall(cc registry.ClientConfig) Call {
	c := newCall(cc)
	c.Request = &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
		Raw: []byte(`{"kind":"Cluster","a":"` + strings.Repeat("x", 8<<20) + `"}`),
	}}
	return c
}

// A request whose end was never sent cannot have been processed, so it is sent again after a reset.
func TestAnotherAttemptAfterHalfARequest(t *testing.T) {
	var connections atomic.Int32
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		if connections.Add(1) == 1 {
			_, _ = io.ReadFull(c, make([]byte, 1000))
			reset(c)
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if n, _ := io.Copy(io.Discard, req.Body); n == req.ContentLength {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(success), success)
		}
	})
	if _, err := newREST(t, Config{}).Call(t.Context(), largeCall(cc)); err != nil {
		t.Errorf("got %v (%v)", err, errors.Unwrap(err))
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
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

// gRPC repeats no call that has reached the server: what it answered is the answer. Only Unavailable with a RetryInfo asks
// for the same call again.
func TestGRPCAttempts(t *testing.T) {
	later := func(code codes.Code, delay time.Duration) error {
		st, err := status.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	for name, tc := range map[string]struct {
		answer error
		want   int32
	}{
		"Unavailable":       {status.Error(codes.Unavailable, "later"), 1},
		"Aborted":           {status.Error(codes.Aborted, "later"), 1},
		"ResourceExhausted": {later(codes.ResourceExhausted, 0), 1},
		"AtOnce":            {later(codes.Unavailable, 0), 3},
		"Negative":          {later(codes.Unavailable, -time.Second), 3},
		"BeyondTimeout":     {later(codes.Unavailable, limits.Timeout), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			cc := newAuthor(t, newAuthority(t), &author{create: func(
				context.Context, *hooksv1alpha1.BeforeClusterCreateRequest,
			) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				calls.Add(1)
				return nil, tc.answer
			}}, nil)
			if m, err := callGRPC(t.Context(), newGRPC(t, Config{}), newCall(cc)); m != nil || err == nil {
				t.Errorf("got %v, %v", m, err)
			}
			if n := calls.Load(); n != tc.want {
				t.Errorf("%d calls, want %d", n, tc.want)
			}
		})
	}
}

// refuser is an HTTP/2 server that processes no stream: it refuses each, or goes away. It calls began with each.
func refuser(t *testing.T, goAway bool, began func()) registry.ClientConfig {
	t.Helper()
	ca := newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{issue(t, ca, time.Now().Add(time.Hour))}, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return serveRaw(t, l, ca, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		framer := http2.NewFramer(c, c)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if framer.WriteSettings() != nil {
			return
		}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			headers, ok := frame.(*http2.MetaHeadersFrame)
			if !ok {
				continue
			}
			if strings.HasPrefix(headers.PseudoValue("path"), "/grpc.health") {
				var block bytes.Buffer
				encoder := hpack.NewEncoder(&block)
				for _, f := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "12"}} {
					_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
				}
				_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: headers.StreamID, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
				continue
			}
			began()
			if goAway {
				_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
				return
			}
			if framer.WriteRSTStream(headers.StreamID, http2.ErrCodeRefusedStream) != nil {
				return
			}
		}
	})
}

// Streams that an HTTP/2 server says it has not processed are sent again, in both protocols, and not for ever.
func TestRefusedStreams(t *testing.T) {
	for name, goAway := range map[string]bool{"RefusedStream": false, "GoAway": true} {
		for _, protocol := range []registry.Protocol{registry.REST, registry.GRPC} {
			t.Run(name+string(protocol), func(t *testing.T) {
				t.Parallel()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var streams atomic.Int32
				c := newCall(refuser(t, goAway, func() {
					if streams.Add(1) == 2 { // more may come for a while
						time.AfterFunc(2*time.Second, leave)
					}
				}))
				c.Handler.Registration.ClientConfig.Protocol = protocol
				p := NewProtocols(withHooks(Config{PreferHTTP2: true}))
				defer p.Close()
				if _, err := p.Call(ctx, c); err == nil {
					t.Error("no error")
				}
				if n := streams.Load(); n < 2 || n > 30 {
					t.Errorf("%d streams, want a few", n)
				}
			})
		}
	}
}

// restarting is a listener that breaks the first connections off, as an extension does while it starts.
type restarting struct {
	net.Listener
	left *atomic.Int32
}

func (r restarting) Accept() (net.Conn, error) {
	for {
		c, err := r.Listener.Accept()
		if err != nil || r.left.Add(-1) < 0 {
			return c, err
		}
		_ = c.Close()
	}
}

// An extension that breaks connections off while it restarts misses no call, if it is away for no longer than calls wait.
func TestCallsDuringARestart(t *testing.T) {
	ca := newAuthority(t)
	for name, tc := range map[string]struct {
		breaks int32
		want   hook.Kind // of the error, if there is one
	}{
		"Away once": {1, hook.Internal}, "Away for long": {1000, hook.Unreachable},
	} {
		for _, protocol := range []registry.Protocol{registry.REST, registry.GRPC} {
			t.Run(name+string(protocol), func(t *testing.T) {
				t.Parallel()
				left := &atomic.Int32{}
				left.Store(tc.breaks)
				var cc registry.ClientConfig
				if protocol == registry.REST {
					cc = newServer(t, ca, answer(success), func(s *httptest.Server) { s.Listener = restarting{s.Listener, left} }).cc
				} else {
					certificate := issue(t, ca, time.Now().Add(time.Hour))
					l := listen(t, "tcp", "127.0.0.1:0")
					serveGRPC(t, restarting{l, left}, &author{}, nil, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
					cc = registry.ClientConfig{Protocol: protocol, URL: "grpcs://" + l.Addr().String(), CABundle: ca.PEM}
				}
				p := NewProtocols(withHooks(Config{RestartWait: time.Second}))
				defer p.Close()
				_, err := p.Call(t.Context(), newCall(cc))
				if tc.want == hook.Internal && err != nil || tc.want != hook.Internal && hook.KindOf(err) != tc.want {
					t.Errorf("got %v (%v)", err, errors.Unwrap(err))
				}
			})
		}
	}
}

// One call in ten may be repeated, and ten at the start.
func TestRetryBudget(t *testing.T) {
	b := &retryBudget{}
	spend := func(want int) {
		t.Helper()
		n := 0
		for n < 100 && b.spend() {
			n++
		}
		if n != want {
			t.Errorf("%d retries, want %d", n, want)
		}
	}
	spend(10)
	for range 9 {
		b.earn()
	}
	spend(0)
	b.earn()
	spend(1)
	for range 1000 {
		b.earn()
	}
	spend(10)
}

func TestRetriesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetries(&retryBudget{})
		for _, want := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
			began := time.Now()
			if !r.wait(t.Context(), 0) {
				t.Fatal("no retry")
			}
			if took := time.Since(began); took < want*8/10 || took > want*12/10 {
				t.Errorf("waited %s, want %s give or take a fifth", took, want)
			}
		}
		if r.wait(t.Context(), 0) {
			t.Error("a fourth attempt")
		}

		r = newRetries(&retryBudget{})
		began := time.Now()
		if !r.wait(t.Context(), 3*time.Second) || time.Since(began) != 3*time.Second {
			t.Errorf("waited %s, want as long as the extension asks for", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if r.wait(ctx, time.Second) || time.Since(began) != 0 {
			t.Error("waited for an attempt that comes after the deadline")
		}
		r = newRetries(&retryBudget{})
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r.wait(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Error("the caller left, and the retry went on")
		}
	})
}

// A connection that never carried the request leaves the call free to use another.
func TestUnsent(t *testing.T) {
	closedIdle := errors.New("http: server closed idle connection")
	for name, tc := range map[string]struct {
		connected  bool
		unfinished bool
		err        error
		want       bool
	}{
		"no connection":             {false, false, io.EOF, true},
		"kept connection closed":    {true, false, closedIdle, true},
		"connection, then EOF":      {true, false, io.EOF, false},
		"connection, then timeout":  {true, false, context.DeadlineExceeded, false},
		"no connection in time":     {false, false, context.DeadlineExceeded, true},
		"half a request, then EOF":  {true, true, io.EOF, true},
		"text in the middle of one": {true, false, errors.New("http: server closed idle connection: again"), false},
	} {
		a := &attempt{unfinished: tc.unfinished}
		a.connected.Store(tc.connected)
		if got := a.unsent(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
