// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// sendingWait is how long the end of a request that was answered early is waited for, and how long an answer to a
// request that could not be sent to its end: net/http waits as long.
const sendingWait = 50 * time.Millisecond

// chunkOverhead is how much longer than twice its size an answer may be on the wire, in bytes: what a small one takes
// that comes in single characters, and what is read ahead.
const chunkOverhead = limits.ChunkBytes

// errSmallChunks is the error of an answer that is longer, by its chunks or by the records of TLS.
var errSmallChunks = errors.New("answer comes in chunks that are too small")

// postRequest is what net/http must know of a request to read its answer.
var postRequest = &http.Request{Method: http.MethodPost}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// exchange is one request on a connection with its answer, of which it is the body. It belongs to one goroutine, except
// that a large body is sent by one of its own, so that an answer may begin before the request has ended.
type exchange struct {
	client  *http1
	conn    *http1Conn
	ctx     context.Context
	stop    func() bool // ends the watch of ctx; false if ctx has ended
	sender  sync.WaitGroup
	sending chan error    // gets what came of a large body; nil if there is none, or it was received
	body    io.ReadCloser // of the answer
	wire    int64         // where it begins in what the connection has received, with the records of TLS
	size    int64         // of the body, as far as it was read
	keep    bool          // the connection may be used again after the answer
	ended   bool
}

// roundTrip sends a request and returns its answer, whose body gives the connection back. text is the header with the
// body, or without it if it is large.
func (h *http1) roundTrip(ctx context.Context, text []byte, large *restBody, a *attempt) (*http.Response, error) {
	c, err := h.get(ctx)
	if err != nil {
		return nil, err
	}
	a.connected.Store(true)
	a.unnegotiated.Store(!c.used && c.ConnectionState().NegotiatedProtocol == "")
	c.used = true
	x := &exchange{client: h, conn: c, ctx: ctx}
	x.stop = context.AfterFunc(ctx, x.interrupt)
	resp, err := x.send(text, large, a)
	if err != nil {
		return nil, x.fail(err)
	}
	x.wire = c.records.read
	x.body, x.keep = resp.Body, !resp.Close && resp.StatusCode >= http.StatusOK
	if resp.TransferEncoding != nil && c.answers.hasLength {
		x.keep = false // https://www.rfc-editor.org/rfc/rfc9112#section-6.1: perhaps two answers in one
	}
	resp.Body = x
	if resp.ContentLength == 0 {
		resp.Body = http.NoBody
		x.end(x.keep)
	}
	return resp, nil
}

// interrupt ends all reading and writing.
func (x *exchange) interrupt() { _ = x.conn.records.SetDeadline(longAgo) }

// send sends the request and reads the header of the answer.
func (x *exchange) send(text []byte, large *restBody, a *attempt) (*http.Response, error) {
	if err := x.conn.writeAll(text); err != nil {
		a.unfinished = true
		return nil, err
	}
	if large == nil {
		a.wrote.Store(true)
		return x.conn.readAnswer()
	}
	x.sending = make(chan error, 1)
	x.sender.Go(func() {
		_, err := x.conn.ReadFrom(large.reader())
		if err == nil {
			a.wrote.Store(true)
		} else {
			// The server may have answered before it hung up.
			_ = x.conn.records.SetReadDeadline(time.Now().Add(sendingWait))
		}
		x.sending <- err
	})
	return x.conn.readAnswer()
}

// readAnswer reads the header of an answer, and those of the interim answers before it.
func (c *http1Conn) readAnswer() (*http.Response, error) {
	c.answers.begin()
	if _, err := c.in.Peek(1); err != nil {
		return nil, err // io.EOF, for one, which http.ReadResponse would call unexpected
	}
	for {
		resp, err := http.ReadResponse(c.in, postRequest)
		if err != nil {
			return nil, cmp.Or(c.answers.tooLarge(), err) // whatever the part that was read looks like
		}
		if c.answers.lines < 0 {
			return nil, connect.ErrHeaderTooLong
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			c.answers.header = false
			return resp, nil
		}
	}
}

// fail ends an exchange without an answer, and returns why there is none.
func (x *exchange) fail(err error) error {
	var sending error
	if x.sending != nil {
		select {
		case sending = <-x.sending:
			x.sending = nil
		default:
		}
	}
	x.end(false)
	switch {
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case sending != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return sending // no answer came after it
	}
	return err
}

// end gives the connection back, or closes it. Afterwards, nothing reads the body of the request.
func (x *exchange) end(keep bool) {
	if x.ended {
		return
	}
	x.ended = true
	if x.stop() && keep && x.isSent() {
		x.client.put(x.conn)
		return
	}
	_ = x.conn.records.Close() // without an alert of TLS, which would wait for a server that does not read
	x.sender.Wait()
}

// isSent reports whether the request has been sent to its end, or is within a moment.
func (x *exchange) isSent() bool {
	if x.sending == nil {
		return true
	}
	timer := time.NewTimer(x.client.sendingWait)
	defer timer.Stop()
	select {
	case err := <-x.sending:
		x.sending = nil
		return err == nil
	case <-timer.C:
		return false
	}
}

// Read reads the body of the answer, whose end frees the connection.
func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.body.Read(p)
	if x.size += int64(n); x.conn.records.read-x.wire > 2*x.size+chunkOverhead {
		err = errSmallChunks
	}
	if err == nil {
		return n, nil
	}
	whole := errors.Is(err, io.EOF)
	x.end(x.keep && whole)
	if !whole && x.ctx.Err() != nil {
		err = x.ctx.Err()
	}
	return n, err
}

// Close closes the connection, unless the body was read to its end.
func (x *exchange) Close() error {
	x.end(false)
	return nil
}
