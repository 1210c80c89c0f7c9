// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overhead bounds what the peer of a connection over HTTP/2 sends besides the bodies of calls, in bytes: frames
// such as SETTINGS, PRIORITY, WINDOW_UPDATE or empty DATA, headers, and what TLS adds. Go's implementations of HTTP/2
// take any number of such frames, each of which costs the gateway more than its peer. Beyond what calls need,
// connections share a rate, and wait.
package overhead

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

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
	// room is for who waits for the overhead to be within what calls need again.
	room atomic.Pointer[chan struct{}]
}

// Begin notes that a call begins, over a major version of HTTP.
func (m *Meter) Begin(protoMajor int) {
	m.calls.Add(1)
	if protoMajor < 2 && !m.none.Load() {
		m.none.Store(true)
	}
	m.wake()
}

// End notes that a call has ended. Whatever of its body is still on its way, nobody reads.
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
	m.wake()
}

// Bytes returns the overhead.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Framed reports whether no call over HTTP/1.1 has begun.
func (m *Meter) Framed() bool { return !m.none.Load() }

// exceeds reports whether the overhead is beyond what calls need.
func (m *Meter) exceeds() bool {
	return m.Framed() && m.bytes.Load() > limits.OverheadBytes+m.calls.Load()*limits.CallOverheadBytes
}

// wake ends a wait for room, if there is some.
func (m *Meter) wake() {
	if m.room.Load() == nil || m.exceeds() {
		return
	}
	if room := m.room.Swap(nil); room != nil {
		close(*room)
	}
}

// Receive notes that n bytes were received. If they exceed what calls need, it waits for a turn, until they do not
// exceed it any more, or until done is closed. It reports false if nothing of that has happened in time:
// limits.OverheadWait.
func (m *Meter) Receive(n int, turns *Turns, done <-chan struct{}) bool {
	if n <= 0 || !m.Framed() || m.bytes.Add(int64(n)) <= limits.OverheadBytes || !m.exceeds() {
		return true
	}
	room := make(chan struct{})
	m.room.Store(&room)
	defer m.room.Store(nil)
	if !m.exceeds() {
		return true
	}
	turn, inTime := turns.reserve(n)
	timer := time.NewTimer(turn.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return inTime
	case <-room: // such as a call that has begun meanwhile, whose body this was
	case <-done:
	}
	turn.cancel()
	return true
}

// Turns is the rate that connections share. Its zero value has no turns. It is safe for concurrent use.
type Turns struct{ limiter *rate.Limiter }

// NewTurns returns a rate of limits.OverheadBytesPerSecond.
func NewTurns() *Turns {
	return &Turns{rate.NewLimiter(limits.OverheadBytesPerSecond, limits.OverheadBytes)}
}

// turn is a turn to send something, after wait.
type turn struct {
	wait time.Duration
	at   time.Time
	of   []*rate.Reservation // each of what the rate may have at once
}

// reserve reserves a turn for n bytes. If it would come after limits.OverheadWait, there is none, and that is its wait.
func (t *Turns) reserve(n int) (turn, bool) {
	reserved := turn{at: time.Now()}
	for ; n > 0 && t.limiter != nil && reserved.wait <= limits.OverheadWait; n -= limits.OverheadBytes {
		next := t.limiter.ReserveN(reserved.at, min(n, limits.OverheadBytes))
		reserved.of, reserved.wait = append(reserved.of, next), next.DelayFrom(reserved.at)
	}
	if t.limiter == nil || reserved.wait > limits.OverheadWait {
		reserved.cancel()
		return turn{wait: limits.OverheadWait}, false
	}
	return reserved, true
}

// cancel gives back a turn.
func (t turn) cancel() {
	for _, r := range slices.Backward(t.of) {
		r.CancelAt(t.at)
	}
}
