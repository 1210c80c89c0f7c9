// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"

	"github.com/hookgate/hookgate/internal/limits"
)

// resets bounds how often the calls of one connection may end without an answer because the caller resets them. Opening
// and resetting streams costs a caller a few bytes each, and the gateway all that a call does before its body is read.
// The limits on concurrent streams do not count them.
type resets struct {
	once sync.Once
	rate *rate.Limiter
}

// exceeded counts a reset, and reports whether it is one too many.
func (r *resets) exceeded() bool {
	r.once.Do(func() { r.rate = rate.NewLimiter(limits.ResetsPerSecond, limits.Resets) })
	return !r.rate.Allow()
}

// wasReset counts a call that its caller has reset, and closes the connection if there are too many.
func (c *connection) wasReset() {
	if c.resets.exceeded() {
		c.of.cut(c, "the caller resets too many calls")
	}
}

// cut closes a connection because of what its peer does.
func (l *connections) cut(c *connection, reason string) {
	if c.cut.Swap(true) {
		return
	}
	l.mu.Lock()
	l.warn(c, reason)
	l.mu.Unlock()
	_ = c.Close()
}

// endRequest counts a request of HTTP/2 that has been reset. Its context is done only then before its handler returns.
func endRequest(r *http.Request) {
	if r.ProtoMajor < 2 || r.Context().Err() == nil {
		return
	}
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.wasReset()
	}
}

// endStream counts a stream of gRPC that has ended without an answer of the server.
func endStream(ctx context.Context) {
	if c := streamConnection(ctx); c != nil {
		c.wasReset()
	}
}

// streamConnection returns the connection of a stream of gRPC; nil if it has none.
func streamConnection(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(remoteAddr); ok {
			return a.of
		}
	}
	return nil
}

// remoteAddr is the remote address of a connection, which leads back to it: gRPC shows its handlers nothing else of a
// connection.
type remoteAddr struct {
	net.Addr
	of *connection
}

// RemoteAddr returns the remote address.
func (c *connection) RemoteAddr() net.Addr { return remoteAddr{c.Conn.RemoteAddr(), c} }
