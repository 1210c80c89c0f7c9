// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/internal/limits"
)

// overhead is what a connection of HTTP/2 has sent besides the bodies of its calls, in bytes on the wire: frames such
// as SETTINGS, PRIORITY, WINDOW_UPDATE or empty DATA, headers, and what TLS adds. Go's servers take any number of such
// frames, each of which costs the gateway more than its peer. Beyond what calls need, all connections of a front share
// a rate, and wait. Its zero value is that of a connection without a call. It is safe for concurrent use.
type overhead struct {
	bytes atomic.Int64
	// calls is the number of open calls. The bodies of those that wait may be partly received, and not yet read.
	calls atomic.Int64
	// none is set if the connection is of HTTP/1.1, which has no frames.
	none atomic.Bool
}

// begin notes that a call begins, over a major version of HTTP.
func (o *overhead) begin(protoMajor int) {
	o.calls.Add(1)
	if protoMajor < 2 && !o.none.Load() {
		o.none.Store(true)
	}
}

// end notes that a call has ended. Whatever of its body is still on its way, nobody reads.
func (o *overhead) end() {
	o.calls.Add(-1)
	o.less(limits.CallOverheadBytes)
}

// received notes that bytes were received, and reports whether they exceed what calls need.
func (o *overhead) received(n int) bool {
	return !o.none.Load() && o.bytes.Add(int64(n)) > limits.OverheadBytes+o.calls.Load()*limits.CallOverheadBytes
}

// less notes that n of the bytes were no overhead.
func (o *overhead) less(n int64) {
	for {
		bytes := o.bytes.Load()
		if bytes == 0 || o.bytes.CompareAndSwap(bytes, max(bytes-n, 0)) {
			return
		}
	}
}

// newOverheadRate returns the rate that the connections of a front share. A read is no larger than the read-ahead.
func newOverheadRate() *rate.Limiter {
	return rate.NewLimiter(limits.OverheadBytesPerSecond, limits.OverheadBytes)
}

// receive notes that n bytes were received, and waits if they exceed what calls need: for a turn, or until the
// connection is closed. It closes a connection whose turn would be too late.
func (c *connection) receive(n int) {
	if n <= 0 || !c.overhead.received(n) {
		return
	}
	turn := c.of.overhead.ReserveN(time.Now(), min(n, limits.OverheadBytes))
	wait := turn.Delay()
	if wait > limits.OverheadWait {
		turn.Cancel()
		c.of.cut(c, "callers send too much besides their calls")
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	}
}

// countedBody is the body of a request over HTTP/2, which is no overhead of its connection.
type countedBody struct {
	io.ReadCloser
	of *connection
}

// Read reads the body.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.of.overhead.less(int64(n))
	}
	return n, err
}

// countBody counts the body of r, which is of connection c.
func countBody(r *http.Request, c *connection) {
	if r.ProtoMajor >= 2 && r.Body != http.NoBody {
		r.Body = countedBody{r.Body, c}
	}
}
