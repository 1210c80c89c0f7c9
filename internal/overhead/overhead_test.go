// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overhead

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
)

// What exceeds the needs of calls waits for a turn, and no longer than until calls need it, or the connection ends.
func TestReceiveWaits(t *testing.T) {
	const beyond = 2 * limits.OverheadBytes
	spent := func() *Turns {
		turns := NewTurns(limits.OverheadBurst)
		turns.left = 0
		return turns
	}
	for name, tc := range map[string]struct {
		turns *Turns
		then  func(m *Meter, end func()) // after a second
		want  bool
		after time.Duration
	}{
		"a turn":        {spent(), func(*Meter, func()) {}, true, beyond * time.Second / limits.OverheadBytesPerSecond},
		"at once":       {NewTurns(limits.OverheadBurst), func(*Meter, func()) {}, true, 0},
		"no turn":       {new(Turns), func(*Meter, func()) {}, false, limits.OverheadWait},
		"a call begins": {new(Turns), func(m *Meter, _ func()) { m.Begin(2) }, true, time.Second},
		"HTTP/1.1":      {new(Turns), func(m *Meter, _ func()) { m.Begin(1) }, true, time.Second},
		"a body":        {new(Turns), func(m *Meter, _ func()) { m.Less(limits.OverheadBytes) }, true, time.Second},
		"part of one":   {new(Turns), func(m *Meter, _ func()) { m.Less(1) }, false, limits.OverheadWait},
		"the end":       {new(Turns), func(_ *Meter, end func()) { end() }, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m Meter
				done := make(chan struct{})
				began := time.Now()
				then := time.AfterFunc(time.Second, func() { tc.then(&m, func() { close(done) }) })
				defer then.Stop()
				got := m.Receive(beyond, tc.turns, done)
				if took := time.Since(began); got != tc.want || took != tc.after {
					t.Errorf("got %t after %s, want %t after %s", got, took, tc.want, tc.after)
				}
			})
		})
	}
}

// Turns come at the rate, and those that are not needed any more are for others.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(limits.OverheadBurst)
		expect := func(n int, want time.Duration, inTime bool) {
			t.Helper()
			if got, ok := turns.take(n, time.Now()); got != want || ok != inTime {
				t.Errorf("%d bytes: a turn after %s (in time: %t), want %s", n, got, ok, want)
			}
		}
		expect(limits.OverheadBurst, 0, true)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
		expect(limits.OverheadBytesPerSecond, 2*time.Second, true)
		expect(9*limits.OverheadBytesPerSecond, limits.OverheadWait, false)
		time.Sleep(2 * time.Second)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
		turns.give(limits.OverheadBytesPerSecond)
		expect(0, 0, true)
		turns.give(10 * limits.OverheadBurst)
		expect(limits.OverheadBurst, 0, true)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
	})
}

// What comes before a call begins, and is its body, takes no turn from others.
func TestBodiesGiveTurnsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(limits.OverheadBurst)
		var m Meter
		for range 100 {
			if !m.Receive(limits.OverheadBurst/2, turns, nil) {
				t.Fatal("no turn")
			}
			m.Begin(2)
			m.Less(limits.OverheadBurst / 2)
			m.End()
		}
		if wait, _ := turns.take(limits.OverheadBurst, time.Now()); wait > 0 {
			t.Errorf("a turn after %s, want at once", wait)
		}
	})
}
