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
	for name, tc := range map[string]struct {
		turns *Turns
		then  func(m *Meter, end func()) // after a second
		want  bool
		after time.Duration
	}{
		"a turn":        {NewTurns(), func(*Meter, func()) {}, true, beyond / 2 * time.Second / limits.OverheadBytesPerSecond},
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

// A turn that is not needed any more is one for others.
func TestTurnsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		for range 100 {
			taken, ok := turns.reserve(10 * limits.OverheadBytes)
			if !ok {
				t.Fatal("no turn")
			}
			taken.cancel()
		}
		if _, ok := turns.reserve(100 * limits.OverheadBytes); ok {
			t.Error("a turn after more than 10s")
		}
		if got, _ := turns.reserve(limits.OverheadBytes); got.wait > 0 {
			t.Errorf("a turn after %s, want at once", got.wait)
		}
	})
}
