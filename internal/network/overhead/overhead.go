// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overhead bounds what the peer of a connection over HTTP/2 sends besides the bodies of calls, in bytes: frames
// such as SETTINGS, PRIORITY, WINDOW_UPDATE or empty DATA, headers, and what TLS adds. Go's implementations of HTTP/2
// take any number of such frames, each of which costs the gateway more than its peer. Beyond what calls need,
// connections share a rate, and wait. The suite of faults has a flood of each of these frames from callers, and one
// from an extension over gRPC.
package overhead

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Meter is the overhead of a connection. Its zero value is that of a connection without a call. It is safe for
// concurrent use, by one goroutine that calls Receive.
type Meter struct {
	bytes atomic.Int64
	// calls is the number of open calls. The bodies of those that wait may be partly received, and not yet read.
	calls atomic.Int64
	// none is set if the connection is of HTTP/1.1, which has no frames.
	none atomic.Bool
	// owes is set while the overhead exceeds what calls need.
	owes atomic.Bool

	mu     sync.Mutex
	bucket *Bucket
	taken  int           // of its tokens, while it owes
	room   chan struct{} // closed when the overhead does not exceed what calls need any more; nil if none waits
}

// Begin notes that a call begins, over a major version of HTTP.
func (m *Meter) Begin(protoMajor int) {
	m.calls.Add(1)
	if protoMajor < 2 && !m.none.Load() {
		m.none.Store(true)
	}
	m.settle()
}

// End notes that a call has ended. Nothing reads what is left of its body.
func (m *Meter) End() {
	m.calls.Add(-1)
	m.Less(limits.CallOverheadBytes)
}

// Less notes that n of the bytes were no overhead.
func (m *Meter) Less(n int64) {
	for {
		bytes := m.bytes.Load()
		if bytes == 0 || m.bytes.CompareAndSwap(bytes, max(bytes-n, 0)) {
			break
		}
	}
	m.settle()
}

// Bytes returns the overhead.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Framed reports whether no call over HTTP/1.1 has begun.
func (m *Meter) Framed() bool { return !m.none.Load() }

// exceeds reports whether the overhead is beyond what calls need.
func (m *Meter) exceeds() bool {
	return m.Framed() && m.bytes.Load() > limits.OverheadBytes+m.calls.Load()*limits.CallOverheadBytes
}

// settle puts back the tokens that were taken for what turns out to be no overhead: the body of a call, which may come
// before the call's handler runs for the first time.
func (m *Meter) settle() {
	if !m.owes.Load() || m.exceeds() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.owes.Swap(false) {
		return
	}
	m.bucket.putBack(m.taken)
	m.taken = 0
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// Receive notes that n bytes were received. If they exceed what calls need, it takes tokens for them, and waits until
// the bucket has them, until the bytes do not exceed it any more, or until done is closed. It reports false if none of
// these has come in time: limits.OverheadWait.
func (m *Meter) Receive(n int, bucket *Bucket, done <-chan struct{}) bool {
	if n <= 0 || !m.Framed() || m.bytes.Add(int64(n)) <= limits.OverheadBytes || !m.exceeds() {
		return true
	}
	wait, inTime := bucket.take(n, time.Now())
	m.mu.Lock()
	m.bucket = bucket
	if inTime {
		m.taken += n
	}
	var room chan struct{}
	if wait > 0 {
		room = make(chan struct{})
		m.room = room
	}
	m.owes.Store(true)
	m.mu.Unlock()
	m.settle() // what has changed since
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return inTime
	case <-room:
	case <-done:
	}
	return true
}

// Bucket is a token bucket that connections share: it has a burst of tokens, one for each byte, and gets
// limits.OverheadBytesPerSecond. Unlike those of golang.org/x/time/rate, tokens that were taken can be put back. It is
// safe for concurrent use. Its zero value never has a token.
type Bucket struct {
	burst float64 // bytes

	mu   sync.Mutex
	left float64 // bytes; less than none if connections wait
	at   time.Time
}

// NewBucket returns a full Bucket.
func NewBucket(burst int) *Bucket {
	return &Bucket{burst: float64(burst), left: float64(burst), at: time.Now()}
}

// take takes n tokens, and returns how long it takes until the bucket has them. If that is longer than
// limits.OverheadWait, it takes none, and returns that.
func (b *Bucket) take(n int, now time.Time) (wait time.Duration, inTime bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const rate = limits.OverheadBytesPerSecond
	if b.burst == 0 {
		return limits.OverheadWait, false
	}
	if now.After(b.at) {
		b.left = min(b.left+rate*now.Sub(b.at).Seconds(), b.burst)
		b.at = now
	}
	left := b.left - float64(n)
	wait = time.Duration(max(-left, 0) / rate * float64(time.Second))
	if wait > limits.OverheadWait {
		return limits.OverheadWait, false
	}
	b.left = left
	return wait, true
}

// putBack puts back n tokens.
func (b *Bucket) putBack(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 {
		b.left = min(b.left+float64(n), b.burst)
	}
}
