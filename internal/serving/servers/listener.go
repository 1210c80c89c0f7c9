// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// Listener bounds the open connections of an address, in total and for each remote host. It closes those beyond at
// once, so that one host cannot make the others wait: the suite of faults has "10,000 idle callers of one host". It is
// safe for concurrent use.
type Listener struct {
	net.Listener
	total, perHost int
	logger         *slog.Logger
	bucket         *overhead.Bucket // to send something besides calls
	// patience is how long each write may take; zero bounds none.
	patience time.Duration
	// maxAge is the age at which connections over HTTP end with the next answer; zero bounds none.
	maxAge time.Duration

	// generation counts how often all connections that were open had to end.
	generation atomic.Int64
	// wrote is the time of the last write on any connection, in nanoseconds since the epoch.
	wrote atomic.Int64

	mu      sync.Mutex
	open    map[*conn]struct{}
	hosts   map[netip.Addr]int
	closing bool
	refused int // since the last line of the log
	logged  time.Time
}

// newListener returns a Listener of l with room for total connections, perHost of them of one host.
func newListener(l net.Listener, total, perHost int, logger *slog.Logger) *Listener {
	return &Listener{
		Listener: l, total: total, perHost: perHost, logger: logger,
		bucket: overhead.NewBucket(limits.OverheadBurst), open: map[*conn]struct{}{}, hosts: map[netip.Addr]int{},
	}
}

// forFront returns a Listener for a front, which takes limits.Connections, or as many as there are descriptors for. One
// host never has more than half of them.
func forFront(l net.Listener, protocol string, descriptors uint64, logger *slog.Logger) *Listener {
	total := within(descriptors, limits.Descriptors, limits.Connections)
	if total < limits.Connections {
		logger.Warn("the process may open few files, so the gateway accepts few connections: raise the limit of open files "+
			"(ulimit -n)",
			"protocol", protocol, "files", descriptors, "connections", total)
	}
	front := newListener(l, total, min(limits.HostConnections, (total+1)/2), logger.With("protocol", protocol))
	front.patience = limits.AnswerPatience
	return front
}

// forSide returns a Listener for an address besides the fronts, whose name is that of the address in the log.
func forSide(l net.Listener, name string, logger *slog.Logger) *Listener {
	total := within(descriptors(), limits.SideDescriptors, limits.SideConnections)
	return newListener(l, total, limits.SideHostConnections, logger.With("address", name))
}

// connKey is the key of the *conn of a request over HTTP.
type connKey struct{}

// attach makes a server, which does not serve the Listener yet, tell its connections which requests they have: what
// else they send is bounded, and how many requests they reset. Those for which last returns true are the last ones of
// their connections.
func (l *Listener) attach(server *http.Server, last func() bool) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, connOf(c))
	}
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if of := connOf(c); of != nil {
			of.endIfOld(c, state == http.StateIdle)
		}
	}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*conn)
		c.overhead.BeginRequest(r)
		defer c.overhead.End()
		// A caller should not be on a connection that is about to close: what it sends at that moment is lost.
		if c.isOld() || c.isAged() || last() || isLast(r) {
			w.Header().Set("Connection", "close") // over HTTP/2, GOAWAY
		}
		handler.ServeHTTP(w, r)
		if r.ProtoMajor == 2 && r.Context().Err() != nil {
			c.wasReset() // its context is done only then before its handler returns
		}
	})
}

// isLast reports whether the server must close the connection after the answer to r, because the request may have had a
// Content-Length beside its Transfer-Encoding, in HTTP/1.0 a Transfer-Encoding at all: net/http removes the one that it
// ignores, so that these requests look like any other in chunks (https://www.rfc-editor.org/rfc/rfc9112#section-6.1).
func isLast(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || r.TransferEncoding != nil)
}

// Accept returns the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := l.newConn(accepted)
		if !l.admit(c) {
			_ = accepted.Close()
			continue
		}
		return c, nil
	}
}

// admit counts a connection, unless it is beyond a limit.
func (l *Listener) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var reason string
	switch {
	case l.closing:
		return false
	case len(l.open) >= l.total:
		reason = "the address has its maximum number of connections"
	case l.hosts[c.host] >= l.perHost:
		reason = "the host has the maximum number of connections of one host"
	default:
		l.open[c] = struct{}{}
		l.hosts[c.host]++
		return true
	}
	l.warn(c, reason)
	return false
}

// warn logs that connections were refused or cut, once a minute. The caller has the lock.
func (l *Listener) warn(c *conn, reason string) {
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= limits.RefusedInterval {
		l.logger.Warn("connections refused", "host", c.host.String(), "reason", reason, "connections", l.refused)
		l.logged, l.refused = now, 0
	}
}

// cut closes a connection because of what its peer does.
func (l *Listener) cut(c *conn, reason string) {
	if c.cut.Swap(true) {
		return
	}
	l.mu.Lock()
	l.warn(c, reason)
	l.mu.Unlock()
	_ = c.Close()
}

// release gives back the place of a connection, once.
func (l *Listener) release(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	if l.hosts[c.host]--; l.hosts[c.host] == 0 {
		delete(l.hosts, c.host)
	}
}

// closeUnfinished closes the connections whose handshakes have not ended, and refuses new ones from now on.
func (l *Listener) closeUnfinished() {
	l.mu.Lock()
	l.closing = true
	var unfinished []*conn
	for c := range l.open {
		if !c.finished.Load() {
			unfinished = append(unfinished, c)
		}
	}
	l.mu.Unlock()
	for _, c := range unfinished {
		_ = c.Close()
	}
}

// awaitQuiet returns when nothing has been written for drainQuiet, when closed is, or when ctx is done.
func (l *Listener) awaitQuiet(ctx context.Context, closed <-chan struct{}) {
	quiet := time.Now()
	for {
		if wrote := time.Unix(0, l.wrote.Load()); wrote.After(quiet) {
			quiet = wrote
		}
		left := time.Until(quiet.Add(drainQuiet))
		if left <= 0 {
			return
		}
		select {
		case <-time.After(left):
		case <-closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hostOfAddr returns the address of a remote host without its port; the zero value if it has none.
func hostOfAddr(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// connOf returns the connection below TLS; nil if c is of another listener.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	of, _ := c.(*conn)
	return of
}
