// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"

	"github.com/hookgate/hookgate/internal/network/overhead"
)

// intrudingCredentials are credentials of an extension whose connections over gRPC do something besides, once a call of
// the hook has come.
type intrudingCredentials struct {
	credentials.TransportCredentials
	extension *extension
}

// ServerHandshake makes the handshake.
func (c intrudingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if intrude := c.extension.behavior.intrude; err == nil && intrude != nil {
		c.extension.connections.Add(1)
		greeted := &greetedConn{Conn: conn, frames: overhead.FramesOfClient(), acknowledged: make(chan struct{})}
		conn = greeted
		go func() {
			<-greeted.acknowledged
			<-c.extension.called
			intrude(conn)
		}()
	}
	return conn, info, err
}

// Clone returns a copy.
func (c intrudingCredentials) Clone() credentials.TransportCredentials {
	return intrudingCredentials{c.TransportCredentials.Clone(), c.extension}
}

// greetedConn is a connection that tells when the client has acknowledged the server's settings: for gRPC, it is made
// then.
type greetedConn struct {
	net.Conn
	frames       overhead.Frames
	once         sync.Once
	acknowledged chan struct{}
}

// Read reads.
func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for frame := range c.frames.Follow(p[:n]) {
		if frame.Type == http2.FrameSettings && frame.Flags.Has(http2.FlagSettingsAck) {
			c.once.Do(func() { close(c.acknowledged) })
		}
	}
	return n, err
}

// floodFrames sends frames of each kind that need no stream, between those of the server, until the peer ends the
// connection.
func floodFrames(conn net.Conn) {
	var frames bytes.Buffer
	framer := http2.NewFramer(&frames, nil)
	for i := range uint32(100) {
		_ = framer.WritePing(false, [8]byte{})
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100 + i%2})
		_ = framer.WritePriority(2*i+1, http2.PriorityParam{Weight: 1})
		_ = framer.WriteWindowUpdate(1<<31-1, 1)
		_ = framer.WriteData(1<<31-1, false, nil)
		_ = framer.WriteRSTStream(1<<31-1, http2.ErrCodeCancel)
	}
	for {
		if _, err := conn.Write(frames.Bytes()); err != nil {
			return
		}
	}
}

// hangUp ends a connection.
func hangUp(conn net.Conn) { _ = conn.Close() }
