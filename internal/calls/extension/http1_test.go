// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

// isClosed reports whether the other end of a pipe was closed, once all goroutines wait.
func isClosed(there net.Conn) bool {
	_ = there.SetReadDeadline(time.Now())
	_, err := there.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// newIdle returns a connection without TLS, and its other end.
func newIdle(t *testing.T) (c *http1Conn, there net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return newHTTP1Conn(newTLSConn(here, &tls.Config{MinVersion: tls.VersionTLS12})), there
}

// Connections are closed when they have been idle for a minute, and no earlier; of several, the last one is used first.
func TestIdleConnectionsCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &http1{maxIdle: 3}
		var ends []net.Conn
		for i := range 3 {
			c, end := newIdle(t)
			ends = append(ends, end)
			h.put(c)
			if i < 2 {
				time.Sleep(time.Second)
			}
		}
		beyond, end := newIdle(t)
		h.put(beyond)
		if !isClosed(end) {
			t.Error("one connection more than may be idle was kept")
		}
		want := func(reason string, closed ...bool) {
			t.Helper()
			synctest.Wait()
			for i, end := range ends {
				if got := isClosed(end); got != closed[i] {
					t.Errorf("%s: connection %d: closed is %t", reason, i, got)
				}
			}
		}
		last := h.takeIdle()
		time.Sleep(connect.IdleTimeout - 2*time.Second - 1)
		want("just before the time of the first", false, false, false)
		time.Sleep(time.Nanosecond)
		want("at the time of the first", true, false, false)
		h.put(last)
		time.Sleep(time.Second)
		want("at the time of the second", true, true, false)
		time.Sleep(connect.IdleTimeout - time.Second - 1)
		want("just before the time of the one that was used", true, true, false)
		time.Sleep(time.Nanosecond)
		want("at its time", true, true, true)
		if h.reaper != nil {
			t.Error("the timer runs without idle connections")
		}
	})
}

// A retired client closes its idle connections at once, and the others when they are given back.
func TestRetiredConnectionsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &http1{maxIdle: 3}
		idle, idleEnd := newIdle(t)
		busy, busyEnd := newIdle(t)
		h.put(idle)
		h.retire()
		if !isClosed(idleEnd) || isClosed(busyEnd) {
			t.Error("want the idle connection closed, and the other open")
		}
		h.put(busy)
		if !isClosed(busyEnd) {
			t.Error("the connection that was given back is open")
		}
	})
}

// A call without a connection takes the first there is: one that is dialed, or one that another call gives back. What is
// dialed for a call that has ended serves the next one.
func TestCallsWaitForAnyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialed := make(chan *tlsConn)
		h := &http1{maxIdle: 3, dial: func(context.Context) (*tlsConn, error) {
			if c := <-dialed; c != nil {
				return c, nil
			}
			return nil, io.ErrUnexpectedEOF
		}}
		got := make(chan http1Waiting)
		begin := func(ctx context.Context) {
			go func() {
				c, err := h.get(ctx)
				got <- http1Waiting{c, err}
			}()
			synctest.Wait()
		}

		begin(t.Context())
		back, _ := newIdle(t)
		h.put(back)
		if g := <-got; g.conn != back {
			t.Fatalf("got %v, %v, want the connection that was given back", g.conn, g.err)
		}
		fresh, _ := newIdle(t)
		dialed <- fresh.tlsConn
		synctest.Wait()
		if c := h.takeIdle(); c == nil || c.tlsConn != fresh.tlsConn {
			t.Error("the connection that was dialed is not kept")
		}

		ctx, cancel := context.WithCancel(t.Context())
		begin(ctx)
		cancel()
		if g := <-got; !errors.Is(g.err, context.Canceled) {
			t.Errorf("got %v, %v, want it canceled", g.conn, g.err)
		}
		begin(t.Context())
		dialed <- fresh.tlsConn
		if g := <-got; g.err != nil || g.conn.tlsConn != fresh.tlsConn {
			t.Errorf("got %v, %v, want what the first call has dialed", g.conn, g.err)
		}
		dialed <- nil // for nothing

		begin(t.Context())
		dialed <- nil
		if g := <-got; !errors.Is(g.err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v, %v, want the error of the dial", g.conn, g.err)
		}
		if len(h.waiting) > 0 {
			t.Errorf("%d calls wait", len(h.waiting))
		}
	})
}

// Calls that end while their connections are made leave few of these, and a call for which none is made has the error
// of one that was made for another.
func TestConnectionsOfCallsThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dialing atomic.Int32
		failing := make(chan struct{})
		h := &http1{maxIdle: 3, dial: func(context.Context) (*tlsConn, error) {
			dialing.Add(1)
			<-failing
			return nil, io.ErrUnexpectedEOF
		}}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 * limits.AbandonedDials {
			if _, err := h.get(ended); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
		got := make(chan error)
		for range 3 {
			go func() {
				_, err := h.get(t.Context())
				got <- err
			}()
		}
		synctest.Wait()
		if n := dialing.Load(); n != limits.AbandonedDials+3 {
			t.Errorf("%d connections are made, want %d", n, limits.AbandonedDials+3)
		}
		close(failing)
		for range 3 {
			if err := <-got; !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v", err)
			}
		}
		synctest.Wait()
		if h.dialing != 0 || len(h.waiting) != 0 {
			t.Errorf("%d connections are made for %d calls that wait", h.dialing, len(h.waiting))
		}
		// All that are dialed belong to calls that have ended, and so fewer than calls wait.
		h.dialing = limits.AbandonedDials + 1
		go func() {
			_, err := h.get(t.Context())
			got <- err
		}()
		synctest.Wait()
		for h.dialing > 0 {
			h.connect(t.Context(), make(chan http1Waiting, 1))
		}
		if err := <-got; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	})
}

// What no request has asked for is no answer to the next one, even if it came together with an answer. Nor is a
// connection used that the server has closed.
func TestConnectionsThatCannotBeUsedAgain(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: "
	good := fmt.Sprintf("%s%d\r\n\r\n%s", head, len(success), success)
	for name, tc := range map[string]struct {
		after func(c net.Conn) // the answer to the first call
		want  int32            // connections for two calls
	}{
		"kept":           {func(net.Conn) {}, 1},
		"closed":         {func(c net.Conn) { _ = c.Close() }, 2},
		"another answer": {func(c net.Conn) { _, _ = io.WriteString(c, head+"2\r\n\r\n{}") }, 2},
		"closed without TLS": {func(c net.Conn) {
			_ = c.(*tls.Conn).NetConn().Close()
		}, 2},
		"reset": {reset, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			done := make(chan struct{}, 2)
			cc := rawServer(t, newAuthority(t), func(c net.Conn) {
				connections.Add(1)
				for first := true; readRequest(c) == nil; first = false {
					_, _ = io.WriteString(c, good)
					if first {
						tc.after(c)
						done <- struct{}{}
					}
				}
			})
			r := newREST(t, Config{})
			mustCall(t, r, cc)
			<-done
			if tc.want > 1 {
				awaitNoneAlive(t, r, cc)
			}
			mustCall(t, r, cc)
			if n := connections.Load(); n != tc.want {
				t.Errorf("%d connections for two calls, want %d", n, tc.want)
			}
			if rt, err := r.routes.get(cc); err != nil || rt.budget.debt.Load() != 0 {
				t.Errorf("debt of retries is %d, want the call made once: %v", rt.budget.debt.Load(), err)
			}
		})
	}
}

// Interim answers are not the answer, and an answer without a body leaves its connection free.
func TestInterimAndEmptyAnswers(t *testing.T) {
	var connections, requests atomic.Int32
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		connections.Add(1)
		for readRequest(c) == nil {
			if requests.Add(1) == 1 {
				_, _ = io.WriteString(c, "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
				continue
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(success), success)
		}
	})
	r := newREST(t, Config{})
	mustCall(t, r, cc)
	mustCall(t, r, cc)
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	switching := rawServer(t, newAuthority(t), func(c net.Conn) {
		if readRequest(c) == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		}
	})
	m, err := call(t.Context(), r, newCall(switching))
	wantError(t, "a protocol that was not asked for", m, err, hook.BadResponse,
		`handler "v.acme": call extension: answered 101 Switching Protocols`)
}

// An answer counts that comes before the request has been sent to its end, and the connection does not.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	var connections atomic.Int32
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		connections.Add(1)
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(success), success)
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, 1)) // and no more
		<-t.Context().Done()
	})
	r := newREST(t, Config{})
	for range 2 {
		result, err := r.Call(t.Context(), largeCall(cc))
		if err != nil {
			t.Fatal(err)
		}
		if result.Sent >= 8<<20 {
			t.Errorf("%d bytes count as sent, want a part", result.Sent)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// Requests over HTTP/1.1 have the same headers with http1 and with net/http, which is used for proxies.
func TestHeadersOfHTTP1(t *testing.T) {
	var got []*http.Request
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req)
		answer(success)(w, req)
	}, func(s *httptest.Server) { s.EnableHTTP2 = false })
	member := map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b,c=d", "baggage": "k=v%20w",
	}
	propagator := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	ctx := propagator.Extract(t.Context(), propagation.MapCarrier(member))
	for _, own := range []bool{true, false} {
		r := newREST(t, Config{Propagator: propagator})
		cc := s.cc
		cc.URL += "/a%20prefix"
		rt, err := r.routes.get(cc)
		if err != nil {
			t.Fatal(err)
		}
		p := rt.host.acquire(r.now())
		if !own {
			p.useNetHTTP()
		}
		c := newCall(cc)
		c.Via = "gateway/handler"
		if _, err := r.Call(ctx, c); err != nil {
			t.Fatal(err)
		}
		p.release()
	}
	for name := range member {
		if got[0].Header.Get(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
	a, b := got[0], got[1]
	if fmt.Sprint(a.Header) != fmt.Sprint(b.Header) || a.Host != b.Host || a.URL.Path != b.URL.Path ||
		a.ContentLength != b.ContentLength || len(a.URL.RawQuery) == 0 {
		t.Errorf("http1: %s %s %v\nnet/http: %s %s %v", a.Host, a.URL, a.Header, b.Host, b.URL, b.Header)
	}
}

// A line of a header cannot have another line in it.
func TestHeaderLines(t *testing.T) {
	for value, valid := range map[string]bool{"a": true, "a b": true, "a\r\nb: c": false, "a\nb": false, "a\x00": false} {
		h := headerLines{}
		if h.Set("X", value); (h.err == nil) != valid || valid && string(h.text) != "X: "+value+"\r\n" || !valid && len(h.text) > 0 {
			t.Errorf("%q: %q, %v", value, h.text, h.err)
		}
	}
}

// Hosts behind a proxy, and those with names that have another form in a header, are left to net/http.
func TestPlainHosts(t *testing.T) {
	config := &Config{partners: &partners{}, Proxy: func(r *http.Request) (*url.URL, error) {
		switch r.URL.Hostname() {
		case "proxied":
			return &url.URL{Scheme: "http", Host: "proxy"}, nil
		case "broken":
			return nil, errors.New("no proxy")
		}
		return nil, nil
	}}
	for host, want := range map[string]bool{
		"ext.example": true, "ext.example:9443": true, "[::1]:9443": true, "127.0.0.1": true,
		"proxied": false, "proxied:1": false, "broken": false, "exämple": false, "[fe80::1%25eth0]": false,
	} {
		e, err := endpoint.Parse("https://"+host, endpoint.HTTPS)
		if err != nil {
			t.Fatal(err)
		}
		if got := newHost(config, e, nil, registry.ClientConfig{}).isPlain(); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
	e, err := endpoint.Parse("https://proxied", endpoint.HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	if !newHost(config, e, nil, registry.ClientConfig{InCluster: true}).isPlain() {
		t.Error("a Service has no proxy")
	}
}
