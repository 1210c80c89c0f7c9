// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overhead

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// What exceeds the needs of calls waits for tokens, and no longer than until calls need it, or the connection ends.
func TestReceiveWaits(t *testing.T) {
	const beyond = 2 * limits.OverheadBytes
	spent := func() *Bucket {
		bucket := NewBucket(limits.OverheadBurst)
		bucket.left = 0
		return bucket
	}
	for name, tc := range map[string]struct {
		bucket *Bucket
		then   func(m *Meter, end func()) // after a second
		want   bool
		after  time.Duration
	}{
		"tokens":        {spent(), func(*Meter, func()) {}, true, beyond * time.Second / limits.OverheadBytesPerSecond},
		"at once":       {NewBucket(limits.OverheadBurst), func(*Meter, func()) {}, true, 0},
		"none":          {new(Bucket), func(*Meter, func()) {}, false, limits.OverheadWait},
		"a call begins": {new(Bucket), func(m *Meter, _ func()) { m.Begin(2) }, true, time.Second},
		"HTTP/1.1":      {new(Bucket), func(m *Meter, _ func()) { m.Begin(1) }, true, time.Second},
		"a body":        {new(Bucket), func(m *Meter, _ func()) { m.Less(limits.OverheadBytes) }, true, time.Second},
		"part of one":   {new(Bucket), func(m *Meter, _ func()) { m.Less(1) }, false, limits.OverheadWait},
		"the end":       {new(Bucket), func(_ *Meter, end func()) { end() }, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m Meter
				done := make(chan struct{})
				began := time.Now()
				then := time.AfterFunc(time.Second, func() { tc.then(&m, func() { close(done) }) })
				defer then.Stop()
				got := m.Receive(beyond, tc.bucket, done)
				if took := time.Since(began); got != tc.want || took != tc.after {
					t.Errorf("got %t after %s, want %t after %s", got, took, tc.want, tc.after)
				}
			})
		})
	}
}

// Tokens come at the rate, and those that are not needed any more are for others.
func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := NewBucket(limits.OverheadBurst)
		expect := func(n int, want time.Duration, inTime bool) {
			t.Helper()
			if got, ok := bucket.take(n, time.Now()); got != want || ok != inTime {
				t.Errorf("%d bytes: tokens after %s (in time: %t), want %s", n, got, ok, want)
			}
		}
		expect(limits.OverheadBurst, 0, true)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
		expect(limits.OverheadBytesPerSecond, 2*time.Second, true)
		expect(9*limits.OverheadBytesPerSecond, limits.OverheadWait, false)
		time.Sleep(2 * time.Second)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
		bucket.putBack(limits.OverheadBytesPerSecond)
		expect(0, 0, true)
		bucket.putBack(10 * limits.OverheadBurst)
		expect(limits.OverheadBurst, 0, true)
		expect(limits.OverheadBytesPerSecond, time.Second, true)
	})
}

// What comes before a call begins, and is its body, takes no tokens from others.
func TestBodiesPutTokensBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := NewBucket(limits.OverheadBurst)
		var m Meter
		for range 100 {
			if !m.Receive(limits.OverheadBurst/2, bucket, nil) {
				t.Fatal("no tokens")
			}
			m.Begin(2)
			m.Less(limits.OverheadBurst / 2)
			m.End()
		}
		if wait, _ := bucket.take(limits.OverheadBurst, time.Now()); wait > 0 {
			t.Errorf("tokens after %s, want at once", wait)
		}
	})
}
