// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// floodFaults are the rows of callers that send frames of HTTP/2 without end, to both fronts.
func floodFaults() []row {
	const stay = "the connections may stay, in bounded memory"
	never := func(bool, bool) bool { return false }
	always := func(bool, bool) bool { return true }
	return []row{
		{"flood of reset streams", "the gateway ends the connections", flood(resetStreams, always)},
		{"flood of CONTINUATION", "the gateway ends the connections", flood(continuations("x"), always)},
		{"flood of empty CONTINUATION", stay, flood(continuations(""), never)},
		{
			"flood of PING", "the gateway ends the connections, over JSON those that do not read the answers",
			flood(pings, func(overGRPC, reads bool) bool { return overGRPC || !reads }),
		},
		{"flood of SETTINGS", stay, flood(settings, never)},
		{"flood of empty DATA", stay, flood(emptyData, never)},
		{"flood of PRIORITY", stay, flood(priorities, never)},
		{"flood of WINDOW_UPDATE", stay, flood(windowUpdates, never)},
		{"slow headers over HTTP/2", "the gateway ends the connections after 3 minutes", slowHeadersEnd},
	}
}

// floodTime is how long a flood lasts, and endTime how long the gateway may take to end one that it has to end.
const (
	floodTime = 3 * time.Second
	endTime   = time.Minute
)

// rawHTTP2 is a connection over HTTP/2 that sends any frame.
type rawHTTP2 struct {
	net.Conn
	*http2.Framer
	header  bytes.Buffer
	encoder *hpack.Encoder
}

// dialHTTP2 connects to a front.
func (w *fixture) dialHTTP2(t *testing.T, address string) (*rawHTTP2, error) {
	t.Helper()
	config := w.client.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config, NetDialer: &net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)},
	}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &rawHTTP2{Conn: conn, Framer: http2.NewFramer(conn, nil)}
	c.encoder = hpack.NewEncoder(&c.header)
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = c.WriteSettings()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// block returns the header block of a call, with more fields.
func (c *rawHTTP2) block(path string, more ...string) []byte {
	c.header.Reset()
	fields := append([]string{
		":method", "POST", ":scheme", "https", ":authority", "a", ":path", path, "content-type", "application/grpc",
	}, more...)
	for f := range slices.Chunk(fields, 2) {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return c.header.Bytes()
}

// createPath is the path of a hook over JSON.
const createPath = "/" + apiVersion + "/beforeclustercreate"

// open begins a call.
func (c *rawHTTP2) open(stream uint32, whole bool) error {
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block(createPath), EndHeaders: whole})
}

// resetStreams opens a stream, and resets it at once.
func resetStreams(c *rawHTTP2, i uint32) error {
	if err := c.open(2*i+1, true); err != nil {
		return err
	}
	return c.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
}

// continuations begins a header that does not end.
func continuations(text string) func(*rawHTTP2, uint32) error {
	return func(c *rawHTTP2, i uint32) error {
		if i == 0 {
			return c.open(1, false)
		}
		c.header.Reset()
		if text != "" {
			_ = c.encoder.WriteField(hpack.HeaderField{Name: "x", Value: text, Sensitive: true})
		}
		return c.WriteContinuation(1, false, c.header.Bytes())
	}
}

func pings(c *rawHTTP2, _ uint32) error { return c.WritePing(false, [8]byte{}) }

func settings(c *rawHTTP2, i uint32) error {
	return c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<16 + i%2})
}

// emptyData begins a call whose body has frames, but no bytes.
func emptyData(c *rawHTTP2, i uint32) error {
	if i == 0 {
		return c.open(1, true)
	}
	return c.WriteData(1, false, nil)
}

func priorities(c *rawHTTP2, i uint32) error {
	return c.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 2*i + 3, Weight: byte(i)})
}

func windowUpdates(c *rawHTTP2, _ uint32) error { return c.WriteWindowUpdate(0, 1) }

// flood returns the fault of connections on which a frame follows the other, to both fronts: from peers that read what
// comes back, and from peers that do not. The gateway must end those that ends says.
func flood(send func(c *rawHTTP2, i uint32) error, ends func(overGRPC, reads bool) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		var running sync.WaitGroup
		for i, address := range []string{w.gateway.HTTPS, w.gateway.GRPC} {
			for _, reads := range []bool{true, false} {
				must, duration := ends(i == 1, reads), floodTime
				if must {
					duration = endTime
				}
				running.Go(func() {
					conn, err := w.dialHTTP2(t, address)
					if err != nil {
						c.countf(false, "%v", err)
						return
					}
					defer func() { _ = conn.Close() }()
					if reads {
						go func() { _, _ = io.Copy(io.Discard, conn) }()
					}
					ended := conn.flood(send, duration)
					c.countf(ended || !must, "a connection to %s stays (its peer reads: %t)", []string{"JSON", "gRPC"}[i], reads)
				})
			}
		}
		running.Wait()
	}
}

// flood sends frames until the duration is over or the peer ends the connection, and reports whether it did.
func (c *rawHTTP2) flood(send func(c *rawHTTP2, i uint32) error, duration time.Duration) (ended bool) {
	deadline := time.Now().Add(duration)
	_ = c.SetWriteDeadline(deadline)
	for i := uint32(0); time.Now().Before(deadline); i++ {
		if err := send(c, i); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	return false
}

// slowHeaders are connections whose header does not end, to both fronts of a gateway of their own.
type slowHeaders struct {
	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error // of each connection; nil if the gateway has ended it
}

// slowHeadersTime is after how long the gateway has ended a connection without a whole header, as one without a call: 3
// minutes, and what a busy machine adds.
const slowHeadersTime = 4 * time.Minute

// beginSlowHeaders begins what slowHeadersEnd waits for, so that other rows are injected meanwhile.
func (w *fixture) beginSlowHeaders(t *testing.T) {
	t.Helper()
	g := w.another(t)
	slow := &slowHeaders{}
	w.slow = slow
	for i := range 100 {
		address := []string{g.HTTPS, g.GRPC}[i%2]
		slow.running.Go(func() {
			err := w.slowHeader(t, address)
			slow.mu.Lock()
			defer slow.mu.Unlock()
			slow.errs = append(slow.errs, err)
		})
	}
}

// slowHeader sends a header byte by byte until the gateway ends the connection.
func (w *fixture) slowHeader(t *testing.T, address string) error {
	conn, err := w.dialHTTP2(t, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(ended)
	}()
	began := time.Now()
	if err = conn.open(1, false); err == nil {
		err = conn.WriteContinuation(1, false, []byte{0x10, 1, 'x', 0x7f, 0xe9, 0x06}) // x has 1000 bytes
	}
	for tick := time.NewTicker(time.Second); err == nil; {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		if time.Since(began) > slowHeadersTime {
			return fmt.Errorf("a connection to %s whose header does not end stays open", address)
		}
		err = conn.WriteContinuation(1, false, []byte{'x'})
	}
	return nil
}

// slowHeadersEnd waits for the ends of the connections that have sent a header byte by byte meanwhile.
func slowHeadersEnd(t *testing.T, w *fixture, c *tally) {
	if w.slow == nil {
		w.beginSlowHeaders(t)
	}
	w.slow.running.Wait()
	for _, err := range w.slow.errs {
		c.countf(err == nil, "%v", err)
	}
	w.slow = nil
}
