// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxIdleConnections is for each target: as many callers at the same time find a connection waiting.
	maxIdleConnections = 256
	// idleTimeout is less than that of common servers (Go's and Cluster API's 90 s, nginx's 75 s), so that it is
	// the gateway that closes, and a request does not meet a server that is just about to.
	idleTimeout = 60 * time.Second
	// tlsTimeout bounds a handshake, which goes on when the call that began it has ended.
	tlsTimeout = 10 * time.Second
	// http2Connections is how many HTTP/2 connections calls take turns on. A single one would lead all of them to
	// one of the pods behind a service.
	http2Connections = 4

	maxHeaderBytes  = 1 << 20
	readBufferSize  = 16 << 10
	writeBufferSize = 16 << 10
)

// errRetired ends the dialing of connections that nobody waits for any more.
var errRetired = errors.New("connections to this target are given up")

// pool is the connections to a target that were made in one period. Its users are the target, and each call until it has
// its whole answer. With the last one gone, all connections close.
type pool struct {
	users
	target  *target
	http2   bool
	expires time.Time

	transports []*http.Transport
	turn       atomic.Uint32

	ctx    context.Context // ends with the pool
	cancel context.CancelFunc

	mu          sync.Mutex
	connections map[*connection]struct{}
}

// newPool returns a pool that its caller has acquired.
func newPool(t *target, expires time.Time) *pool {
	p := &pool{target: t, http2: t.http2.Load(), expires: expires, connections: map[*connection]struct{}{}}
	p.begin(p.end)
	p.ctx, p.cancel = context.WithCancel(context.Background())

	n := 1
	if p.http2 {
		n = http2Connections
	}
	for range n {
		p.transports = append(p.transports, p.newTransport())
	}
	return p
}

func (p *pool) newTransport() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(p.http2)
	// The server's name is left to the transport: it is the URL's host.
	tlsConfig := p.target.config.clientTLS(p.target.roots)
	tlsConfig.NextProtos = []string{"http/1.1"}
	if p.http2 {
		tlsConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	transport := &http.Transport{
		Proxy:                  p.target.proxy(),
		OnProxyConnectResponse: checkProxy,
		DialContext:            p.dial,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    tlsTimeout,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxIdleConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ReadBufferSize:         readBufferSize,
		WriteBufferSize:        writeBufferSize,
	}
	if !p.http2 {
		// For connections without a proxy. With HTTP/2, the transport must make them itself.
		transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return p.dialTLS(ctx, tlsConfig, network, addr)
		}
	}
	return transport
}

// end closes all connections, those too that a transport has not yet put back among the idle ones, and those that are
// still being made.
func (p *pool) end() {
	p.cancel()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
	p.mu.Lock()
	left := p.connections
	p.connections = nil
	p.mu.Unlock()
	for c := range left {
		_ = c.Conn.Close() // of no use to anybody, so neither is the error
	}
}

// retire gives the pool up for the target, its last user but for the calls under way. Idle connections close at once.
func (p *pool) retire() {
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
	p.release()
}

// transport returns the transport whose turn it is.
func (p *pool) transport() *http.Transport {
	if len(p.transports) == 1 {
		return p.transports[0]
	}
	return p.transports[int(p.turn.Add(1))%len(p.transports)]
}

// dial is http.Transport.DialContext.
func (p *pool) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errRetired) })()

	c, err := p.target.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c.pool = p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connections == nil {
		_ = c.Conn.Close()
		return nil, errRetired
	}
	p.connections[c] = struct{}{}
	return c, nil
}

// connection is a TCP connection that its pool knows of.
type connection struct {
	net.Conn
	pool *pool
}

// Close closes the connection and makes the pool forget it.
func (c *connection) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.connections, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// checkProxy makes an error with a stable text of a proxy's refusal.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &proxyError{code: resp.StatusCode}
	}
	return nil
}
