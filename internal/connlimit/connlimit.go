// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the open connections of a listener, in total and for each remote host, and what each sends
// besides its requests. Connections beyond are closed at once, so that one host cannot make the others wait. The fronts
// of the gateway have more limits, and a listener of their own.
package connlimit

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/overhead"
)

// logEvery is how often refused connections are logged at most.
const logEvery = time.Minute

// Listener is a listener whose connections are bounded. It is safe for concurrent use.
type Listener struct {
	net.Listener
	name           string
	total, perHost int
	turns          *overhead.Turns // to send something besides requests
	logger         *slog.Logger

	mu      sync.Mutex
	open    int
	hosts   map[netip.Addr]int // those with open connections
	refused int                // since the last line of the log
	logged  time.Time
}

// New returns a Listener of l that takes limits.SideConnections, or as many as there are descriptors for. The name is
// that of its address in the log.
func New(l net.Listener, name string, logger *slog.Logger) *Listener {
	return &Listener{
		Listener: l, name: name, perHost: limits.SideHostConnections,
		total: Within(Descriptors(), limits.SideDescriptors, limits.SideConnections),
		turns: overhead.NewTurns(limits.OverheadBurst), logger: logger, hosts: map[netip.Addr]int{},
	}
}

// connKey is the key of the *conn of a request.
type connKey struct{}

// Bound makes a server, which does not serve the Listener yet, tell the bodies of requests from what else its
// connections send. It bounds requests over HTTP/2, too.
func (l *Listener) Bound(server *http.Server) {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		return context.WithValue(ctx, connKey{}, c)
	}
	// What a request has not read yet is no more than a call may have besides.
	server.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: limits.SideStreams, MaxReceiveBufferPerStream: limits.CallOverheadBytes,
	}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.overhead.BeginRequest(r)
			defer c.overhead.End()
		}
		handler.ServeHTTP(w, r)
	})
}

// Accept returns the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := HostOf(c.RemoteAddr())
		if l.admit(host) {
			closed := make(chan struct{})
			return &conn{Conn: c, of: l, host: host, closed: closed, release: sync.OnceFunc(func() {
				close(closed)
				l.release(host)
			})}, nil
		}
		_ = c.Close()
	}
}

func (l *Listener) admit(host netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open < l.total && l.hosts[host] < l.perHost {
		l.open++
		l.hosts[host]++
		return true
	}
	l.warn(host, "there are as many connections as there may be")
	return false
}

// warn logs that connections were refused or closed, once a minute. The caller has the lock.
func (l *Listener) warn(host netip.Addr, reason string) {
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.logger.Warn("connections refused", "address", l.name, "host", host.String(), "reason", reason,
			"connections", l.refused)
		l.logged, l.refused = now, 0
	}
}

func (l *Listener) release(host netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
}

// HostOf returns the address of a remote host without its port; the zero value if it has none.
func HostOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// conn gives back its place when it is closed.
type conn struct {
	net.Conn
	of       *Listener
	host     netip.Addr
	overhead overhead.Meter
	closed   chan struct{}
	release  func()
}

// Read reads, and waits if the connection has sent too much besides its requests. If it would have to wait too long, it
// closes the connection.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.overhead.Receive(n, c.of.turns, c.closed) {
		c.of.mu.Lock()
		c.of.warn(c.host, "it sends too much besides its requests")
		c.of.mu.Unlock()
		return 0, errors.Join(net.ErrClosed, c.Close())
	}
	return n, err
}

// Close closes the connection.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
