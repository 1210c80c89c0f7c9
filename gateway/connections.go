// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/connlimit"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/overhead"
	"github.com/hookgate/hookgate/internal/readahead"
)

// logRefusedEvery is how often refused connections are logged at most.
const logRefusedEvery = time.Minute

// connections is a listener that bounds the open connections of a front, in total and for each remote host. It closes
// those beyond at once, so that one host cannot make the others wait. It is safe for concurrent use.
type connections struct {
	net.Listener
	protocol       string
	total, perHost int
	logger         *slog.Logger
	turns          *overhead.Turns // to send something besides calls

	// generation counts how often all connections that were open had to end.
	generation atomic.Int64
	// wrote is the time of the last write on any connection, in nanoseconds since the epoch.
	wrote atomic.Int64

	mu      sync.Mutex
	open    map[*connection]struct{}
	hosts   map[netip.Addr]int
	closing bool
	refused int // since the last line of the log
	logged  time.Time
}

// limitConnections returns a listener that takes limits.Connections, or as many as there are descriptors for. One host
// never has more than half of them.
func limitConnections(l net.Listener, protocol string, descriptors uint64, logger *slog.Logger) *connections {
	total := connlimit.Within(descriptors, limits.Descriptors, limits.Connections)
	if total < limits.Connections {
		logger.Warn("few connections are accepted, because the process may open few files: raise its limit (ulimit -n)",
			"protocol", protocol, "files", descriptors, "connections", total)
	}
	return &connections{
		Listener: l, protocol: protocol, total: total, perHost: min(limits.HostConnections, (total+1)/2), logger: logger,
		turns: overhead.NewTurns(limits.OverheadBurst), open: map[*connection]struct{}{}, hosts: map[netip.Addr]int{},
	}
}

// Accept returns the next connection within the limits.
func (l *connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		admitted := l.connection(c)
		if !l.admit(admitted) {
			_ = c.Close()
			continue
		}
		return admitted, nil
	}
}

// connection returns a connection that is not counted yet.
func (l *connections) connection(c net.Conn) *connection {
	closed := make(chan struct{})
	return &connection{
		Conn: c, of: l, host: connlimit.HostOf(c.RemoteAddr()), generation: l.generation.Load(),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// admit counts a connection, unless it is beyond a limit.
func (l *connections) admit(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var reason string
	switch {
	case l.closing:
		return false
	case len(l.open) >= l.total:
		reason = "the gateway has as many connections as it may have"
	case l.hosts[c.host] >= l.perHost:
		reason = "the host has as many connections as one may have"
	default:
		l.open[c] = struct{}{}
		l.hosts[c.host]++
		return true
	}
	l.warn(c, reason)
	return false
}

// warn logs that connections were refused or cut, once a minute. The caller has the lock.
func (l *connections) warn(c *connection, reason string) {
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logRefusedEvery {
		l.logger.Warn("connections refused", "protocol", l.protocol, "host", c.host.String(), "reason", reason,
			"connections", l.refused)
		l.logged, l.refused = now, 0
	}
}

// release gives back the place of a connection, once.
func (l *connections) release(c *connection) {
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
func (l *connections) closeUnfinished() {
	l.mu.Lock()
	l.closing = true
	var unfinished []*connection
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
func (l *connections) awaitQuiet(ctx context.Context, closed <-chan struct{}) {
	quiet := time.Now()
	for {
		quiet = later(quiet, time.Unix(0, l.wrote.Load()))
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

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// connection is a counted connection.
type connection struct {
	net.Conn
	of   *connections
	host netip.Addr
	// generation is that of the listener when it was accepted.
	generation int64
	idle       atomic.Bool
	// finished is set once the server has lifted the deadline for the handshakes.
	finished atomic.Bool
	resets   resets
	overhead overhead.Meter
	cut      atomic.Bool // because of one of them
	ahead    readahead.Reader
	closed   chan struct{}
	close    func()      // closes closed, once
	last     atomic.Bool // the request that was read last is the last one
}

// connectionOf returns the connection below TLS; nil if c is of another listener.
func connectionOf(c net.Conn) *connection {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	of, _ := c.(*connection)
	return of
}

// isOld reports whether the connection has to end.
func (c *connection) isOld() bool { return c.generation != c.of.generation.Load() }

// lastFlush is how long the end of an answer may be on its way out of a server that calls the connection idle.
const lastFlush = time.Second

// endIfOld records whether the server has no call on the connection. It closes c, which is the connection or TLS on it,
// if it had a call when it grew old, and is idle now.
func (c *connection) endIfOld(outer net.Conn, idle bool) {
	c.idle.Store(idle)
	if !idle || !c.isOld() {
		return
	}
	time.AfterFunc(lastFlush, func() {
		if c.idle.Load() {
			_ = outer.Close()
		}
	})
}

// SetDeadline sets the deadline. gRPC's server sets one for the handshakes, up to the first frame of HTTP/2, and lifts
// it afterwards. Without this, its GracefulStop and Stop would both wait for connections that never send a frame.
func (c *connection) SetDeadline(t time.Time) error {
	if t.IsZero() {
		c.finished.Store(true)
	}
	return c.Conn.SetDeadline(t)
}

// answerTime is how long a caller that still sends has to read the last answer. Closing a connection of which not all
// was read resets it, and what the caller has not read may be lost. It is as long as net/http waits.
const answerTime = 500 * time.Millisecond

// endAfterAnswer makes the connection end when the answer to the request that was read last has been sent.
func (c *connection) endAfterAnswer() { c.last.Store(true) }

// Read reads into p, and ahead while much arrives. It waits if the connection has sent too much besides its calls.
func (c *connection) Read(p []byte) (int, error) {
	if c.last.Load() {
		select {
		case <-time.After(answerTime):
		case <-c.closed:
		}
		return 0, io.EOF
	}
	n, err := c.ahead.Read(c.Conn, p)
	if !c.overhead.Receive(n, c.of.turns, c.closed) {
		c.of.cut(c, "callers send too much besides their calls")
	}
	return n, err
}

// Write writes p, and records when it has.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.of.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}

// Close closes the connection, and gives back its place the first time.
func (c *connection) Close() error {
	c.of.release(c)
	err := c.Conn.Close()
	c.close()
	c.ahead.Close()
	return err
}
