// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// countingCredentials are credentials of a server whose connections count what is body in the frames of HTTP/2: gRPC
// shows a message only once it has arrived as a whole.
type countingCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake makes the handshake.
func (c countingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if of, ok := raw.(*connection); ok && err == nil {
		conn = &framedConn{Conn: conn, of: of, left: len(http2.ClientPreface)}
	}
	return conn, info, err
}

// Clone returns a copy.
func (c countingCredentials) Clone() credentials.TransportCredentials {
	return countingCredentials{c.TransportCredentials.Clone()}
}

// frameHeader is the size of the header of a frame.
const frameHeader = 9

// framedConn is a connection that counts what is body in the frames that are read. Whether they are right is judged by
// the server that reads them.
type framedConn struct {
	net.Conn
	of *connection

	left   int  // of the payload of the current frame, or of the preface
	isData bool // of the current frame
	header [frameHeader]byte
	filled int // of the header
}

// Read reads.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if body := c.follow(p[:n]); body > 0 {
		c.of.overhead.less(int64(body))
	}
	return n, err
}

// follow goes through what was read, and returns how much of it is the payload of DATA.
func (c *framedConn) follow(p []byte) (body int) {
	for len(p) > 0 {
		if c.left > 0 {
			n := min(c.left, len(p))
			if c.isData {
				body += n
			}
			c.left -= n
			p = p[n:]
			continue
		}
		n := copy(c.header[c.filled:], p)
		c.filled += n
		p = p[n:]
		if c.filled == frameHeader {
			c.filled = 0
			c.left = int(c.header[0])<<16 | int(c.header[1])<<8 | int(c.header[2])
			c.isData = http2.FrameType(c.header[3]) == http2.FrameData
		}
	}
	return body
}
