// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the open connections of a listener, in total and for each remote host. Those beyond are
// closed at once, so that one host cannot make the others wait. The fronts of the gateway have more limits, and a
// listener of their own.
package connlimit

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
)

// logEvery is how often refused connections are logged at most.
const logEvery = time.Minute

// Listener is a listener whose connections are bounded. It is safe for concurrent use.
type Listener struct {
	net.Listener
	name           string
	total, perHost int
	logger         *slog.Logger

	mu      sync.Mutex
	open    int
	hosts   map[netip.Addr]int // those with open connections
	refused int                // since the last line of the log
	logged  time.Time
}

// New returns a Listener of l that takes limits.SideConnections. The name is that of its address in the log.
func New(l net.Listener, name string, logger *slog.Logger) *Listener {
	return &Listener{
		Listener: l, name: name, total: limits.SideConnections, perHost: limits.SideHostConnections, logger: logger,
		hosts: map[netip.Addr]int{},
	}
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
			return &conn{Conn: c, release: sync.OnceFunc(func() { l.release(host) })}, nil
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
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.logger.Warn("connections refused", "address", l.name, "host", host.String(), "connections", l.refused)
		l.logged, l.refused = now, 0
	}
	return false
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
	release func()
}

// Close closes the connection.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
