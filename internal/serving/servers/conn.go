// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// conn is a connection of a Listener.
type conn struct {
	net.Conn
	of   *Listener
	host netip.Addr
	// generation is that of the listener when it was accepted.
	generation int64
	idle       atomic.Bool
	// finished is set once the server has lifted the deadline for the handshakes.
	finished atomic.Bool
	// resets bounds how often the calls of the connection may end without an answer because the caller resets them.
	// Opening and resetting streams costs a caller a few bytes each, and the gateway all that a call does before its
	// body is read. The limits on concurrent streams do not count them. The suite of faults has them as "flood of reset
	// streams".
	resets   func() *rate.Limiter
	overhead overhead.Meter
	cut      atomic.Bool // because of one of them
	closed   chan struct{}
	close    func()      // closes closed, once
	last     atomic.Bool // the request that was read last is the last one
	agedAt   time.Time   // zero for never
	answers  unreadAnswers
	writeBy  atomic.Int64 // the deadline of writes that the server has set, in nanoseconds since the epoch; 0 for none
}

// newConn returns a connection that is not counted yet.
func (l *Listener) newConn(c net.Conn) *conn {
	closed := make(chan struct{})
	return &conn{
		Conn: c, of: l, host: hostOfAddr(c.RemoteAddr()), generation: l.generation.Load(), agedAt: agedAt(l.maxAge),
		resets: sync.OnceValue(func() *rate.Limiter { return rate.NewLimiter(limits.ResetsPerSecond, limits.Resets) }),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// wasReset counts a call that its caller has reset, and closes the connection if there are too many.
func (c *conn) wasReset() {
	if !c.resets().Allow() {
		c.of.cut(c, "the caller resets too many calls")
	}
}

// isOld reports whether the connection has to end.
func (c *conn) isOld() bool { return c.generation != c.of.generation.Load() }

// isAged reports whether the caller should connect anew. Unlike an old connection, an aged one is never closed without
// telling the caller: nothing is gained by closing it while it is idle.
func (c *conn) isAged() bool { return !c.agedAt.IsZero() && time.Now().After(c.agedAt) }

// agedAt returns when a connection that is accepted now is as old as maxAge, give or take a tenth, so that the
// connections of callers that started together do not end together. gRPC does the same with its own.
func agedAt(maxAge time.Duration) time.Time {
	if maxAge <= 0 {
		return time.Time{}
	}
	jitter := (rand.Float64()*2 - 1) / 10
	return time.Now().Add(maxAge + time.Duration(jitter*float64(maxAge)))
}

// lastFlush is how long the end of an answer may be on its way out of a server that calls the connection idle.
const lastFlush = time.Second

// endIfOld records whether the server has no call on the connection. It closes c, which is the connection or TLS on it,
// if it had a call when it grew old, and is idle now.
func (c *conn) endIfOld(outer net.Conn, idle bool) {
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
func (c *conn) SetDeadline(t time.Time) error {
	if t.IsZero() {
		c.finished.Store(true)
	}
	c.setWriteBy(t)
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline sets the deadline of writes.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.setWriteBy(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *conn) setWriteBy(t time.Time) {
	var by int64
	if !t.IsZero() {
		by = t.UnixNano()
	}
	c.writeBy.Store(by)
}

// answerTime is how long a caller that still sends has to read the last answer. Closing a connection of which not all
// was read resets it, and what the caller has not read may be lost. It is as long as net/http waits.
const answerTime = 500 * time.Millisecond

// endAfterAnswer makes the connection end when the answer to the request that was read last has been sent.
func (c *conn) endAfterAnswer() { c.last.Store(true) }

// Read reads into p. It waits if the connection has sent too much besides its calls.
func (c *conn) Read(p []byte) (int, error) {
	if c.last.Load() {
		select {
		case <-time.After(answerTime):
		case <-c.closed:
		}
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	if !c.overhead.Receive(n, c.of.bucket, c.closed) {
		c.of.cut(c, "callers send too much besides their calls")
	}
	return n, err
}

// Write writes p, and records when it has. A caller that does not read, whatever is written, ends its connection.
func (c *conn) Write(p []byte) (int, error) {
	if c.of.patience > 0 {
		end := time.Now().Add(c.of.patience)
		if by := c.writeBy.Load(); by == 0 || end.UnixNano() < by {
			_ = c.Conn.SetWriteDeadline(end) // of a connection that has closed, which Write says, too
		} else {
			_ = c.Conn.SetWriteDeadline(time.Unix(0, by))
		}
	}
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.of.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}

// Close closes the connection, and gives back its place the first time.
func (c *conn) Close() error {
	c.of.release(c)
	err := c.Conn.Close()
	c.close()
	c.answers.close()
	return err
}

// remoteAddr is the remote address of a connection, which leads back to it: gRPC shows its handlers nothing else of a
// connection.
type remoteAddr struct {
	net.Addr
	of *conn
}

// RemoteAddr returns the remote address.
func (c *conn) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }

// streamConn returns the connection of a stream of gRPC; nil if it has none.
func streamConn(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(remoteAddr); ok {
			return a.of
		}
	}
	return nil
}
