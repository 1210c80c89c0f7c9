// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// piped returns a connection of l, and its peer.
func piped(t *testing.T, l *Listener) (c *conn, peer net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c = l.newConn(ours)
	if !l.admit(c) {
		t.Fatal("not admitted")
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = theirs.Close()
	})
	return c, theirs
}

// readFor returns how long reading n bytes takes that are there at once.
func readFor(t *testing.T, c *conn, peer net.Conn, n int) time.Duration {
	t.Helper()
	began := time.Now()
	go func() { _, _ = peer.Write(make([]byte, n)) }()
	if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// A connection reads without delay what its calls need, and what is beyond at the rate of all connections.
func TestOverheadRate(t *testing.T) {
	const (
		piece  = 16 << 10
		beyond = 4 * limits.OverheadBytesPerSecond
	)
	for _, tt := range []struct {
		name string
		when func(*conn)
		free int
	}{
		{"no call", func(*conn) {}, limits.OverheadBytes},
		{"open calls", func(c *conn) {
			c.overhead.Begin(2)
			c.overhead.Begin(2)
		}, limits.OverheadBytes + 2*limits.CallOverheadBytes},
		{"body", func(c *conn) {
			c.overhead.Begin(2)
			c.overhead.Receive(limits.OverheadBytes+limits.CallOverheadBytes, nil, nil)
			c.overhead.Less(20 << 20)
		}, limits.OverheadBytes + limits.CallOverheadBytes},
		{"call ended", func(c *conn) {
			c.overhead.Begin(2)
			c.overhead.Receive(limits.CallOverheadBytes, nil, nil)
			c.overhead.End()
		}, limits.OverheadBytes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := piped(t, forFront(nil, "REST", 1<<20, slog.New(slog.DiscardHandler)))
				tt.when(c)
				for n := 0; n < tt.free; n += piece {
					if took := readFor(t, c, peer, piece); took > 0 {
						t.Fatalf("waits %s after %d bytes, want %d at once", took, n, tt.free)
					}
				}
				began := time.Now()
				for n := 0; n < limits.OverheadBurst+beyond; n += piece { // the rate itself has some bytes at once
					readFor(t, c, peer, piece)
				}
				if took := time.Since(began); took < 3900*time.Millisecond || took > 4100*time.Millisecond {
					t.Errorf("%d bytes beyond took %s, want 4s", beyond, took)
				}
			})
		})
	}
}

func TestOverheadOfHTTP1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := piped(t, forFront(nil, "REST", 1<<20, slog.New(slog.DiscardHandler)))
		c.overhead.Begin(1)
		if took := readFor(t, c, peer, 10*limits.OverheadBytes); took > 0 {
			t.Errorf("a body of HTTP/1.1 waits %s", took)
		}
	})
}

// A connection that waits ends at once when it is closed, and one whose turn would be too late is closed.
func TestOverheadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := forFront(nil, "REST", 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
		var all []*conn
		began := time.Now()
		for range 400 {
			c, peer := piped(t, l)
			all = append(all, c)
			go func() { _, _ = io.Copy(peer, zeros{}) }()
			go func() {
				for p := make([]byte, 32<<10); ; {
					if _, err := c.Read(p); err != nil {
						return
					}
				}
			}()
		}
		const soon = limits.OverheadWait + time.Nanosecond
		time.Sleep(soon)
		synctest.Wait() // until those whose turn comes now have had it
		cut := 0
		for _, c := range all {
			if c.cut.Load() {
				cut++
			}
		}
		if cut == 0 || cut == len(all) {
			t.Errorf("%d of %d connections are closed", cut, len(all))
		}
		if got := strings.Count(log.String(), "callers send too much besides their calls"); got != 1 {
			t.Errorf("the log says so %d times, want once:\n%s", got, &log)
		}
		for _, c := range all {
			_ = c.Close()
		}
		synctest.Wait() // until no goroutine can go on: none waits for a turn
		if took := time.Since(began); took > soon {
			t.Errorf("closed connections end after %s", took)
		}
	})
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// only returns the open connection of a front.
func only(t *testing.T, l *Listener) *conn {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) != 1 {
		t.Fatalf("%d connections are open, want 1", len(l.open))
	}
	for c := range l.open {
		return c
	}
	return nil
}

// Bodies are no overhead, over each protocol.
func TestOverheadWithoutBodies(t *testing.T) {
	const size, calls = 4 << 20, 3
	server := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	check := func(t *testing.T, l *Listener) *conn {
		t.Helper()
		c := only(t, l)
		if got := c.overhead.Bytes(); got > 64<<10 {
			t.Errorf("%d bytes of overhead after calls of %d", got, size)
		}
		return c
	}
	for name, first := range map[string]bool{"HTTP/1.1": true, "HTTP/2": false} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: server.tls.Clone(), Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(first)
			transport.Protocols.SetHTTP2(!first)
			defer transport.CloseIdleConnections()
			for range calls {
				resp, err := (&http.Client{Transport: transport}).Post("https://"+server.http, "application/json",
					bytes.NewReader(make([]byte, size)))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			if c := check(t, server.server.restListener); c.overhead.Framed() == first {
				t.Errorf("over HTTP/1.1: %t, want %t", !first, first)
			}
			awaitNone(t, server.server.restListener, transport.CloseIdleConnections)
		})
	}
	t.Run("gRPC", func(t *testing.T) {
		conn, err := grpc.NewClient(server.grpc, grpc.WithTransportCredentials(credentials.NewTLS(server.tls)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for range calls {
			_, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: strings.Repeat("x", size-100)})
			if err == nil || !strings.Contains(err.Error(), "NotFound") {
				t.Fatalf("got %v, want that the service is unknown", err)
			}
		}
		check(t, server.server.grpcListener)
	})
}

// awaitNone waits until the client has closed its connections, which are idle soon.
func awaitNone(t *testing.T, l *Listener, closeIdle func()) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		closeIdle()
		l.mu.Lock()
		open := len(l.open)
		l.mu.Unlock()
		if open == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections are open", open)
		}
	}
}

// Frames without a call wait at both fronts.
func TestOverheadOfFloods(t *testing.T) {
	server := startServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, address := range map[string]string{"REST": server.http, "gRPC": server.grpc} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newResetter(t, address, server.tls)
			var frames bytes.Buffer
			framer := http2.NewFramer(&frames, nil)
			for i := uint32(0); frames.Len() < limits.OverheadBytes+limits.OverheadBurst+limits.OverheadBytesPerSecond; i++ {
				if err := framer.WritePriority(2*i%1000+1, http2.PriorityParam{Weight: 1}); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			if _, err := c.conn.Write(frames.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := c.reset(0); err != nil { // waits for the answer of a PING
				t.Fatal(err)
			}
			if took := time.Since(began); took < 900*time.Millisecond {
				t.Errorf("%d bytes of PRIORITY took %s, want a second", frames.Len(), took)
			}
		})
	}
}
