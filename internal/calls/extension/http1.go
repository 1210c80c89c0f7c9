// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// answerBuffer is the size of the buffer of a connection that holds the header of an answer.
const answerBuffer = 4 << 10

// http1 is a client of HTTP/1.1 for one host. It writes a request and reads its answer in the goroutine of the call,
// where net/http has two goroutines for each connection and hands every call from one to the other: with net/http, a
// call of 4 KB takes 15 to 45 % more CPU time, and one of 250 KB 9 to 16 %.
//
// A connection without a call is in idle. Nothing reads from it there, so it is looked at before it is used again.
type http1 struct {
	dial    func(ctx context.Context) (*tlsConn, error)
	maxIdle int
	// sendingWait is how long the end of a request that was answered early is waited for.
	sendingWait time.Duration

	mu      sync.Mutex
	idle    []*http1Conn          // the last one was used last
	waiting []chan<- http1Waiting // of calls without a connection
	dialing int                   // connections that are being made: no fewer than calls wait
	reaper  *time.Timer           // runs while there are idle connections
	retired bool                  // no connection becomes idle any more
}

// http1Waiting is what a call waits for.
type http1Waiting struct {
	conn *http1Conn
	err  error
}

// http1Conn is a connection, which one call has at a time.
type http1Conn struct {
	*tlsConn
	in        *bufio.Reader
	answers   answerReader // what in reads
	used      bool         // it had a call
	idleSince time.Time
}

func newHTTP1Conn(c *tlsConn) *http1Conn {
	conn := &http1Conn{tlsConn: c, answers: answerReader{conn: c.Conn}}
	conn.in = bufio.NewReaderSize(&conn.answers, answerBuffer)
	return conn
}

// isAlive reports whether another request may be sent: the server has neither closed the connection nor sent anything
// that no request has asked for.
func (c *http1Conn) isAlive() bool { return c.in.Buffered() == 0 && c.isQuiet() }

// get returns a connection, an idle one if there is any. Otherwise it has one dialed, and takes what comes first: that
// one, or one that another call gives back.
func (h *http1) get(ctx context.Context) (*http1Conn, error) {
	for {
		c := h.takeIdle()
		fresh := false
		if c == nil {
			var err error
			if c, err = h.await(ctx); err != nil {
				return nil, err
			}
			fresh = !c.used
		}
		if fresh || c.isAlive() {
			return c, nil
		}
		_ = c.Close() // the server has closed it, perhaps before its first call
	}
}

func (h *http1) takeIdle() *http1Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.idle)
	if n == 0 {
		return nil
	}
	c := h.idle[n-1]
	h.idle[n-1] = nil
	h.idle = h.idle[:n-1]
	return c
}

func (h *http1) await(ctx context.Context) (*http1Conn, error) {
	w := make(chan http1Waiting, 1)
	h.mu.Lock()
	h.waiting = append(h.waiting, w)
	dial := h.dialing < len(h.waiting)+limits.AbandonedDials
	if dial {
		h.dialing++
	}
	h.mu.Unlock()
	if dial {
		// The handshake goes on when the call has ended: of a slow one, the next call has the connection.
		go h.connect(context.WithoutCancel(ctx), w)
	}
	select {
	case got := <-w:
		return got.conn, got.err
	case <-ctx.Done():
		if !h.stopWaiting(w) {
			got := <-w
			if got.err != nil {
				return nil, got.err
			}
			h.put(got.conn)
		}
		return nil, ctx.Err()
	}
}

// connect dials a connection for a call that waits at w. It gives the connection to the call that has waited longest.
func (h *http1) connect(ctx context.Context, w chan<- http1Waiting) {
	c, err := h.dial(ctx)
	if err == nil {
		h.give(newHTTP1Conn(c), true)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dialing--
	i := slices.Index(h.waiting, w)
	if i < 0 && h.dialing < len(h.waiting) {
		i = 0 // of a call for which none is dialed
	}
	if i >= 0 {
		w = h.waiting[i]
		h.waiting = slices.Delete(h.waiting, i, i+1)
		w <- http1Waiting{err: err}
	}
}

// stopWaiting reports false if w was served.
func (h *http1) stopWaiting(w chan<- http1Waiting) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.waiting, w)
	if i < 0 {
		return false
	}
	h.waiting = slices.Delete(h.waiting, i, i+1)
	return true
}

// put takes a connection that no call has.
func (h *http1) put(c *http1Conn) { h.give(c, false) }

// give gives a connection to a call that waits, or keeps it. dialed is set if it was made just now.
func (h *http1) give(c *http1Conn, dialed bool) {
	if !h.keep(c, dialed) {
		_ = c.Close() // without the lock: it is I/O
	}
}

func (h *http1) keep(c *http1Conn, dialed bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if dialed {
		h.dialing--
	}
	if len(h.waiting) > 0 {
		h.waiting[0] <- http1Waiting{conn: c}
		h.waiting = slices.Delete(h.waiting, 0, 1)
		return true
	}
	if h.retired || len(h.idle) >= h.maxIdle {
		return false
	}
	c.idleSince = time.Now()
	h.idle = append(h.idle, c)
	if h.reaper == nil {
		h.reaper = time.AfterFunc(connect.IdleTimeout, h.reap)
	}
	return true
}

// reap closes the connections that have been idle for too long.
func (h *http1) reap() {
	h.mu.Lock()
	now := time.Now()
	n := 0
	for n < len(h.idle) && now.Sub(h.idle[n].idleSince) >= connect.IdleTimeout {
		n++
	}
	old := slices.Clone(h.idle[:n])
	h.idle = slices.Delete(h.idle, 0, n)
	h.reaper = nil
	if len(h.idle) > 0 {
		h.reaper = time.AfterFunc(connect.IdleTimeout-now.Sub(h.idle[0].idleSince), h.reap)
	}
	h.mu.Unlock()
	closeIdle(old)
}

// retire closes the idle connections, and lets none become idle any more.
func (h *http1) retire() {
	h.mu.Lock()
	old := h.idle
	h.idle, h.retired = nil, true
	if h.reaper != nil {
		h.reaper.Stop()
		h.reaper = nil
	}
	h.mu.Unlock()
	closeIdle(old)
}

func closeIdle(conns []*http1Conn) {
	for _, c := range conns {
		_ = c.Close() // no call uses it, so the error is of no use either
	}
}

// answerReader reads from a connection. While it reads the header of an answer, it bounds the bytes and the lines, and
// looks for a Content-Length, which net/http hides beside a Transfer-Encoding.
type answerReader struct {
	conn   *tls.Conn
	header bool
	bytes  int  // that the header may still have
	lines  int  // that it may still have
	within bool // the last byte was within a line

	name      [len(contentLength)]byte // the beginning of the line
	named     int                      // how much of it there is
	hasLength bool
}

// contentLength is how a line with the header begins, in any case.
const contentLength = "content-length:"

// begin begins a header, with those of the interim answers before it.
func (r *answerReader) begin() {
	*r = answerReader{conn: r.conn, header: true, bytes: connect.MaxHeaderBytes, lines: connect.MaxHeaderLines}
}

// tooLarge returns the error of a header that is beyond a bound.
func (r *answerReader) tooLarge() error {
	switch {
	case r.header && r.bytes <= 0:
		return connect.ErrHeaderTooLarge
	case r.header && r.lines < 0:
		return connect.ErrHeaderTooLong
	}
	return nil
}

// Read implements io.Reader.
func (r *answerReader) Read(p []byte) (int, error) {
	if !r.header {
		return r.conn.Read(p)
	}
	if err := r.tooLarge(); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(p[:min(len(p), r.bytes)])
	r.bytes -= n
	r.count(p[:n])
	return n, err
}

// count counts the lines that end in p, up to the end of the header. What comes after it in p, which may be the header
// after an interim one, is at most a buffer.
func (r *answerReader) count(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		line := p
		if i >= 0 {
			line, p = p[:i], p[i+1:]
		}
		r.within = r.within || len(bytes.TrimRight(line, "\r")) > 0
		r.named += copy(r.name[r.named:], line)
		if i < 0 {
			return
		}
		if !r.within {
			return
		}
		r.hasLength = r.hasLength || bytes.EqualFold(r.name[:r.named], []byte(contentLength))
		r.lines--
		r.within, r.named = false, 0
	}
}
