// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"

	"github.com/hookgate/hookgate/internal/network/overhead"
)

// countingCredentials are credentials of a server whose connections count what is body in the frames of HTTP/2: gRPC
// shows a message only once it has arrived as a whole.
type countingCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake makes the handshake.
func (c countingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	made, info, err := c.TransportCredentials.ServerHandshake(raw)
	if of, ok := raw.(*conn); ok && err == nil {
		made = &framedConn{Conn: made, of: of, frames: overhead.FramesOfClient()}
	}
	return made, info, err
}

// Clone returns a copy.
func (c countingCredentials) Clone() credentials.TransportCredentials {
	return countingCredentials{c.TransportCredentials.Clone()}
}

// framedConn is a connection that counts what is body in the frames that are read.
type framedConn struct {
	net.Conn
	of     *conn
	frames overhead.Frames
}

// Read reads.
func (c *framedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var body int
	for frame, payload := range c.frames.Follow(p[:n]) {
		if frame.Type == http2.FrameData {
			body += len(payload)
		}
	}
	if body > 0 {
		c.of.overhead.Less(int64(body))
	}
	return n, err
}
