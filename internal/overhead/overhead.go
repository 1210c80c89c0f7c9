// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overhead bounds what the peer of a connection over HTTP/2 sends besides the bodies of calls, in bytes: frames
// such as SETTINGS, PRIORITY, WINDOW_UPDATE or empty DATA, headers, and what TLS adds. Go's implementations of HTTP/2
// take any number of such frames, each of which costs the gateway more than its peer. Beyond what calls need,
// connections share a rate, and wait.
package overhead

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
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

	mu    sync.Mutex
	turns *Turns
	taken int           // of the turns, while it owes
	room  chan struct{} // closed when the overhead does not exceed what calls need any more; nil if nobody waits
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

// settle gives back the turns that were taken for what turns out to be no overhead: the body of a call, which may come
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
	m.turns.give(m.taken)
	m.taken = 0
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// Receive notes that n bytes were received. If they exceed what calls need, it takes a turn for them, and waits for it,
// until they do not exceed it any more, or until done is closed. It reports false if none of these has come in time:
// limits.OverheadWait.
func (m *Meter) Receive(n int, turns *Turns, done <-chan struct{}) bool {
	if n <= 0 || !m.Framed() || m.bytes.Add(int64(n)) <= limits.OverheadBytes || !m.exceeds() {
		return true
	}
	wait, inTime := turns.take(n, time.Now())
	m.mu.Lock()
	m.turns = turns
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

// Turns is the rate that connections share: limits.OverheadBytesPerSecond, and a burst at once. It is safe for
// concurrent use. Its zero value has no turns.
type Turns struct {
	burst float64 // bytes

	mu   sync.Mutex
	left float64 // bytes; less than none if connections wait
	at   time.Time
}

// NewTurns returns Turns with a burst, in bytes, of which none has been taken.
func NewTurns(burst int) *Turns {
	return &Turns{burst: float64(burst), left: float64(burst), at: time.Now()}
}

// take takes a turn for n bytes, and returns after how long it comes. If that is after limits.OverheadWait, it takes
// none, and that is what it returns.
func (t *Turns) take(n int, now time.Time) (wait time.Duration, inTime bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const rate = limits.OverheadBytesPerSecond
	if t.burst == 0 {
		return limits.OverheadWait, false
	}
	if now.After(t.at) {
		t.left = min(t.left+rate*now.Sub(t.at).Seconds(), t.burst)
		t.at = now
	}
	left := t.left - float64(n)
	wait = time.Duration(max(-left, 0) / rate * float64(time.Second))
	if wait > limits.OverheadWait {
		return limits.OverheadWait, false
	}
	t.left = left
	return wait, true
}

// give gives back turns for n bytes.
func (t *Turns) give(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 {
		t.left = min(t.left+float64(n), t.burst)
	}
}
