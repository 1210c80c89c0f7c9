// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// ErrOverhead reports a server whose frames come faster than they are read, for too long.
var ErrOverhead = errors.New("the server sends too much besides its answers")

// dials bounds how often each address is dialed. gRPC waits only between attempts that fail, and the extension that
// ends connections in the suite of faults makes none fail. It is safe for concurrent use.
type dials struct {
	mu        sync.Mutex
	addresses map[string]*rate.Limiter
}

// mostDialed is how many addresses are remembered: more than a host may have at a time.
const mostDialed = 1024

// wait waits until an address may be dialed, or ctx is done.
func (d *dials) wait(ctx context.Context, address string) error {
	d.mu.Lock()
	l := d.addresses[address]
	if l == nil {
		if d.addresses == nil || len(d.addresses) == mostDialed {
			d.addresses = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Every(limits.RedialInterval), limits.RedialBurst)
		d.addresses[address] = l
	}
	d.mu.Unlock()
	return l.Wait(ctx)
}

// mostInFlight is the largest window that gRPC gives a stream: what may come after it was given up.
const mostInFlight = limits.AbandonedBytes

// boundedConn is a connection to a server of gRPC that is read slowly if the server sends more than its calls need.
// gRPC reads it in one goroutine, and writes it in another. The suite of faults has "extension floods frames".
type boundedConn struct {
	net.Conn
	bucket   *overhead.Bucket
	failures *Failures
	meter    overhead.Meter

	received overhead.Frames
	sent     overhead.Frames
	header   *headerReader // of what is sent

	mu      sync.Mutex
	streams map[uint32]bool // those that are open: whether they are calls
	late    int             // what may still come of answers that were given up, in bytes

	closed chan struct{}
	close  func() // closes closed, once
}

func newBoundedConn(c net.Conn, bucket *overhead.Bucket, failures *Failures) *boundedConn {
	closed := make(chan struct{})
	return &boundedConn{
		Conn: c, bucket: bucket, failures: failures, sent: overhead.FramesOfClient(), header: newHeaderReader(),
		streams: map[uint32]bool{}, closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// Read reads, and waits if the server sends too much besides its answers.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	besides := n
	for frame, payload := range c.received.Follow(p[:n]) {
		if frame.Type == http2.FrameData {
			besides += c.overheadOf(frame.Stream, len(payload)) - len(payload)
		}
		if frame.Left == 0 && (frame.Type == http2.FrameRSTStream || frame.Flags.Has(http2.FlagHeadersEndStream) &&
			(frame.Type == http2.FrameHeaders || frame.Type == http2.FrameData)) {
			c.ended(frame.Stream, false)
		}
	}
	if !c.meter.Receive(besides, c.bucket, c.closed) {
		c.failures.Set(ErrOverhead)
		_ = c.Close()
		return 0, ErrOverhead
	}
	return n, err
}

// Write writes, and notes which calls begin.
func (c *boundedConn) Write(p []byte) (int, error) {
	for frame, payload := range c.sent.Follow(p) {
		switch frame.Type {
		case http2.FrameHeaders, http2.FrameContinuation:
			c.header.read(payload)
			if frame.Left == 0 && frame.Flags.Has(http2.FlagHeadersEndHeaders) {
				c.begun(frame.Stream, !strings.HasPrefix(c.header.end(), "/grpc.health."))
			}
		case http2.FrameRSTStream:
			if frame.Left == 0 {
				c.ended(frame.Stream, true)
			}
		}
	}
	return c.Conn.Write(p)
}

// overheadOf returns as how much overhead a payload of n bytes counts.
func (c *boundedConn) overheadOf(stream uint32, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	isCall, open := c.streams[stream]
	switch {
	case isCall:
		return 0
	case open:
		return n * limits.HealthOverhead
	}
	late := min(n, c.late)
	c.late -= late
	return n - late
}

func (c *boundedConn) begun(id uint32, isCall bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[id] = isCall
	if isCall {
		c.meter.Begin(2)
	}
}

// ended notes that a stream has ended, perhaps because it was given up.
func (c *boundedConn) ended(id uint32, givenUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[id] {
		c.meter.End()
		if givenUp {
			c.late += mostInFlight
		}
	}
	delete(c.streams, id)
}

// headerReader reads the paths of requests from their headers.
type headerReader struct {
	decoder *hpack.Decoder
	path    string
}

func newHeaderReader() *headerReader {
	const tableSize = 4096 // the one that gRPC begins with, and does not exceed
	h := &headerReader{}
	h.decoder = hpack.NewDecoder(tableSize, func(f hpack.HeaderField) {
		if f.Name == ":path" {
			h.path = f.Value
			h.decoder.SetEmitEnabled(false)
		}
	})
	return h
}

// read reads a piece of a header. What gRPC has written is right: with an error, there would be no path.
func (h *headerReader) read(piece []byte) { _, _ = h.decoder.Write(piece) }

// end returns the path of the request whose header has ended.
func (h *headerReader) end() string {
	_ = h.decoder.Close()
	h.decoder.SetEmitEnabled(true)
	path := h.path
	h.path = ""
	return path
}
