// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// http2Connections is how many HTTP/2 connections calls take turns on. A single one would lead all of them to one of
// the pods behind a Service.
const http2Connections = 4

// errRetired ends the dialing of connections that no call waits for any more.
var errRetired = errors.New("no call needs the connection any more")

// pool holds the connections to a host that were made in one period. The host refers to it, and each call until it has
// its whole answer. With the last reference, all connections close.
type pool struct {
	refs
	host    *host
	http2   bool
	expires time.Time

	http1      *http1            // nil if a transport is needed
	transports []*http.Transport // for HTTP/2, and for what http1 does not do
	turn       atomic.Uint32

	ctx    context.Context // ends with the pool
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[*conn]struct{} // nil once the pool has closed
}

// newPool returns a pool that its caller has acquired.
func newPool(h *host, expires time.Time) *pool {
	p := &pool{host: h, http2: h.http2.Load(), expires: expires, conns: map[*conn]struct{}{}}
	p.init(p.close)
	p.ctx, p.cancel = context.WithCancel(context.Background())

	if !p.http2 && h.isPlain() {
		p.http1 = p.newHTTP1()
		return p
	}
	n := 1
	if p.http2 {
		n = http2Connections
	}
	for range n {
		p.transports = append(p.transports, p.newTransport())
	}
	return p
}

func (p *pool) newHTTP1() *http1 {
	config := p.host.clientTLS()
	config.NextProtos, config.ServerName = []string{"http/1.1"}, p.host.endpoint.Host
	return &http1{
		maxIdle: p.host.config.MaxIdleConnections, sendingWait: sendingWait,
		dial: func(ctx context.Context) (*tlsConn, error) { return p.dialHTTP1(ctx, config) },
	}
}

func (p *pool) newTransport() *http.Transport {
	// The server's name is left to the transport: it is the URL's host.
	transport := connect.NewTransport(p.host.clientTLS(), p.http2, p.host.config.MaxIdleConnections)
	transport.Proxy, transport.DialContext = p.host.proxy(), p.dialMetered
	// What has come of an answer and is not read yet is no more than a call may have besides.
	transport.HTTP2.MaxReceiveBufferPerStream = limits.CallOverheadBytes
	return transport
}

// close closes all connections, including those that a transport has not yet put back among the idle ones, and those
// that are still being made.
func (p *pool) close() {
	p.cancel()
	p.closeIdle()
	p.mu.Lock()
	left := p.conns
	p.conns = nil
	p.mu.Unlock()
	for c := range left {
		_ = c.Conn.Close() // no call uses it, so the error is of no use either
	}
}

// retire releases the host's reference. Idle connections close at once, the others with their calls.
func (p *pool) retire() {
	p.closeIdle()
	p.release()
}

func (p *pool) closeIdle() {
	if p.http1 != nil {
		p.http1.retire()
	}
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}

// transport returns the transport whose turn it is.
func (p *pool) transport() *http.Transport {
	if len(p.transports) == 1 {
		return p.transports[0]
	}
	return p.transports[int(p.turn.Add(1))%len(p.transports)]
}

// dialMetered implements http.Transport.DialContext.
func (p *pool) dialMetered(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := p.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newMeteredConn(c, p.host.config.bucket), nil
}

// dial connects to addr.
func (p *pool) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errRetired) })()

	raw, err := p.host.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = raw.Close()
		return nil, errRetired
	}
	p.conns[c] = struct{}{}
	return c, nil
}

// conn is a TCP connection that its pool knows of.
type conn struct {
	net.Conn
	pool *pool
}

// Close closes the connection and removes it from the pool.
func (c *conn) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.conns, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}
