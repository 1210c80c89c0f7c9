// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/tls"
	"io"
	"net"
	"sync"

	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// meteredConn is a connection of a transport that is read slowly if the server sends more over HTTP/2 than its answers
// need. net/http takes any number of frames, each of which costs it more than the server: with one call, a flood of
// DATA of one byte takes all of a processor. It counts what comes, with the records of TLS, and is told what was body.
type meteredConn struct {
	net.Conn
	bucket *overhead.Bucket
	meter  overhead.Meter
	closed chan struct{}
	close  func() // closes closed, once
}

func newMeteredConn(c net.Conn, bucket *overhead.Bucket) *meteredConn {
	closed := make(chan struct{})
	return &meteredConn{
		Conn: c, bucket: bucket, closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// Read reads, and waits if the server sends too much besides its answers.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.meter.Receive(n, c.bucket, c.closed) {
		_ = c.Close()
		return 0, connect.ErrOverhead
	}
	return n, err
}

// Close closes the connection.
func (c *meteredConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// meteredConnOf returns the connection beneath TLS, also to a proxy; nil if there is none.
func meteredConnOf(c net.Conn) *meteredConn {
	for {
		switch on := c.(type) {
		case *meteredConn:
			return on
		case *tls.Conn:
			c = on.NetConn()
		default:
			return nil
		}
	}
}

// meteredCall is the call of an attempt on a connection. net/http may give the attempt another one, and do so after the
// attempt has ended. Its zero value has none.
type meteredCall struct {
	mu    sync.Mutex
	conn  *meteredConn
	ended bool
}

// begin begins the call on a connection, and ends it on the one before.
func (m *meteredCall) begin(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.conn.meter.End()
	}
	if m.conn = meteredConnOf(c); m.conn == nil {
		return
	}
	m.conn.meter.Begin(majorOf(c))
	if m.ended {
		m.conn.meter.End()
		m.conn = nil
	}
}

// majorOf returns the major version of HTTP on a connection.
func majorOf(c net.Conn) int {
	if c, ok := c.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol == "h2" {
		return 2
	}
	return 1
}

// end ends the call.
func (m *meteredCall) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	if m.conn != nil {
		m.conn.meter.End()
		m.conn = nil
	}
}

// read notes how much of the body was read.
func (m *meteredCall) read(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && n > 0 {
		m.conn.meter.Less(int64(n))
	}
}

// meteredBody is the body of an answer, with which the call ends.
type meteredBody struct {
	io.ReadCloser
	call *meteredCall
}

// Read reads the body.
func (b meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.call.read(n)
	return n, err
}

// Close closes the body.
func (b meteredBody) Close() error {
	err := b.ReadCloser.Close()
	b.call.end()
	return err
}
