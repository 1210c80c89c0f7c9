// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/hook"
)

// expect checks that an error is the one of a caller that does too much, or nil.
func expect(t *testing.T, what string, err error, refused bool) {
	t.Helper()
	var e *hook.Error
	if refused && (!errors.As(err, &e) || e.Kind != hook.Overloaded || e.RetryAfter != time.Second) || !refused && err != nil {
		t.Errorf("%s: %v, want it refused: %v", what, err, refused)
	}
}

// TestCallsInFlightAreBounded tests exactly as many calls as one caller may have, one beyond, and another caller.
func TestCallsInFlightAreBounded(t *testing.T) {
	l := newLimiter(Limits{InFlight: 3})
	a, b := Caller{"a", Token}, Caller{"a", Certificate} // of one name, and not the same
	var used []*usage
	for i := range 3 {
		u, err := l.begin(a)
		expect(t, fmt.Sprint("call ", i), err, false)
		used = append(used, u)
	}
	_, err := l.begin(a)
	expect(t, "one call more", err, true)
	_, err = l.begin(b)
	expect(t, "another caller", err, false)
	l.end(used[0])
	_, err = l.begin(a)
	expect(t, "after one has ended", err, false)
}

// TestCallsPerSecondAreBounded tests a burst, and that calls come back at the rate.
func TestCallsPerSecondAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Rate: 10})
		call := func() error {
			u, err := l.begin(Caller{"a", Token})
			if err == nil {
				l.end(u)
			}
			return err
		}
		for i := range 10 {
			expect(t, fmt.Sprint("call ", i, " of a burst"), call(), false)
		}
		expect(t, "one call more", call(), true)
		time.Sleep(99 * time.Millisecond)
		expect(t, "just before there is a call again", call(), true)
		time.Sleep(time.Millisecond)
		expect(t, "after a tenth of a second", call(), false)
		expect(t, "at once after it", call(), true)
	})
}

// TestTrackedCallersAreBounded tests that ever new callers do not grow the table, that the one which was idle the
// longest goes first, and that none with calls in flight does.
func TestTrackedCallersAreBounded(t *testing.T) {
	l := newLimiter(Limits{InFlight: 1})
	l.tracked = 3
	named := func(i int) Caller { return Caller{strconv.Itoa(i), None} }
	busy, err := l.begin(named(0))
	expect(t, "the busy one", err, false)
	for i := 1; i < 100; i++ {
		u, err := l.begin(named(i))
		expect(t, "an idle one", err, false)
		l.end(u)
		if len(l.callers) > 3 || l.callers[named(0)] != busy || i > 1 && l.callers[named(i-1)] == nil {
			t.Fatalf("after %d callers, %d are tracked: %v", i, len(l.callers), l.callers)
		}
	}
	_, err = l.begin(named(0))
	expect(t, "the busy one, beyond its limit", err, true)
	for i := range 2 {
		_, err := l.begin(named(200 + i))
		expect(t, "a busy one in place of an idle one", err, false)
	}
	_, err = l.begin(named(300))
	expect(t, "one more than can be tracked", err, true)
	l.end(busy)
	_, err = l.begin(named(300))
	expect(t, "in place of the one that is idle now", err, false)
}

func TestHostsStandForTheirNetworks(t *testing.T) {
	for host, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "::ffff:192.0.2.1": "::ffff:192.0.2.1",
		"fe80::1%eth0": "fe80::/64", "": "", "bufconn": "bufconn",
	} {
		if got := anonymous(host); got != (Caller{want, None}) {
			t.Errorf("%q: got %v, want %s", host, got, want)
		}
	}
}
