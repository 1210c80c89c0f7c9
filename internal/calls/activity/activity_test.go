// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/base/limits"
)

var now = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func TestBucketsAreWithoutGaps(t *testing.T) {
	for b := range buckets {
		if got := bucket(lower(b)); got != b {
			t.Errorf("bucket(%s) = %d, want %d", lower(b), got, b)
		}
		if got := bucket(lower(b+1) - 1); got != b {
			t.Errorf("bucket(%s) = %d, want %d", lower(b+1)-1, got, b)
		}
	}
	if least := lower(buckets - 1); least < 30*time.Second {
		t.Errorf("the last bucket begins with %s, less than a call may take", least)
	}
	if got := bucket(time.Hour); got != buckets-1 {
		t.Errorf("bucket(1h) = %d, want the last one", got)
	}
	if got := bucket(-time.Second); got != 0 {
		t.Errorf("bucket(-1s) = %d, want 0", got)
	}
}

func TestQuantiles(t *testing.T) {
	var h Handlers
	for i := range 100 { // 10 ms, 20 ms, …, 1 s
		h.Record("a", Call{Ended: now, Took: time.Duration(i+1) * 10 * time.Millisecond})
	}
	of := h.Of("a", now)
	for q, want := range map[float64]time.Duration{.01: 10 * time.Millisecond, .5: 500 * time.Millisecond, .99: 990 * time.Millisecond} {
		if got := of.Quantile(q); got < want/2 || got > want*3/2 {
			t.Errorf("quantile %g: %s, want %s to within a half", q, got, want)
		}
	}
	if got := new(Calls).Quantile(.99); got != 0 {
		t.Errorf("without calls: %s, want 0", got)
	}
}

// TestWindow counts calls of each kind at the borders of slots and of all that is kept.
func TestWindow(t *testing.T) {
	const begin = 0
	at := func(slot int, d time.Duration) time.Time {
		return now.Truncate(Slot).Add(time.Duration(slot)*Slot + d)
	}
	second := time.Second
	tests := []struct {
		name  string
		calls []Call
		at    time.Time
		want  map[int]Point // by the number of slots before the last one; percentiles are left out
	}{
		{"none", nil, at(0, begin), nil},
		{"success", []Call{{Ended: at(0, begin)}}, at(0, begin), map[int]Point{0: {Calls: 1}}},
		{"failures of all kinds", []Call{
			{Ended: at(0, begin), Outcome: Refused}, {Ended: at(0, begin), Outcome: Failed}, {Ended: at(0, begin), Outcome: Ignored},
		}, at(0, begin), map[int]Point{0: {Calls: 3, Failures: 3}}},
		{"eight tenths of the timeout, and less", []Call{
			{Ended: at(0, begin), Took: 8 * second, Timeout: 10 * second},
			{Ended: at(0, begin), Took: 8*second - 1, Timeout: 10 * second},
			{Ended: at(0, begin), Took: 8 * second},
		}, at(0, begin), map[int]Point{0: {Calls: 3, Near: 1}}},
		{"the last moment of a slot, and the first of the next", []Call{{Ended: at(0, Slot-1)}, {Ended: at(1, begin)}},
			at(1, begin), map[int]Point{1: {Calls: 1}, 0: {Calls: 1}}},
		{"the oldest slot", []Call{{Ended: at(0, begin)}}, at(Slots-1, Slot-1), map[int]Point{Slots - 1: {Calls: 1}}},
		{"too old", []Call{{Ended: at(0, Slot-1)}}, at(Slots, begin), nil},
		{"long ago", []Call{{Ended: at(0, begin)}, {Ended: at(100*Slots, begin)}}, at(100*Slots, begin), map[int]Point{0: {Calls: 1}}},
		{"a clock that goes back", []Call{{Ended: at(5, begin)}, {Ended: at(3, begin)}}, at(5, begin), map[int]Point{0: {Calls: 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Handlers
			for _, c := range tt.calls {
				h.Record("a", c)
			}
			of := h.Of("a", tt.at)
			got := map[int]Point{}
			for i, p := range of.Points {
				if p.P99 = 0; p != (Point{}) {
					got[len(of.Points)-1-i] = p
				}
			}
			if tt.want == nil {
				tt.want = map[int]Point{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCallsOfSeveralHandlersAdd(t *testing.T) {
	var h Handlers
	for range 3 {
		h.Record("a", Call{Ended: now, Took: time.Millisecond})
	}
	h.Record("b", Call{Ended: now, Took: time.Second, Outcome: Failed, Timeout: time.Second})
	var all Calls
	for _, name := range []string{"never called", "a", "b"} {
		of := h.Of(name, now)
		all.Add(&of.Calls)
	}
	if got, want := all.Total(), (Point{Calls: 4, Failures: 1, Near: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := all.Quantile(.99); got < 700*time.Millisecond || got > 1500*time.Millisecond {
		t.Errorf("p99 %s, want about 1s", got)
	}
	if got := all.Points[Slots-1].P99; got < 700*time.Millisecond {
		t.Errorf("p99 of the last point %s, want the greater one, about 1s", got)
	}
}

// Percentiles are estimates, and none is longer than the longest call.
func TestNoPercentileIsLongerThanAnyCall(t *testing.T) {
	var h Handlers
	for range 100 {
		h.Record("a", Call{Ended: now, Took: 5 * time.Second, Timeout: 5 * time.Second})
	}
	of := h.Of("a", now)
	all := of.Calls
	all.Add(&of.Calls)
	if got := all.Quantile(.99); got != 5*time.Second {
		t.Errorf("p99 of calls of 5s: %s", got)
	}
	if got := of.Points[Slots-1].P99; got != 5*time.Second {
		t.Errorf("p99 of the last point: %s", got)
	}
}

func TestHandlersSayWhatWasSeenLast(t *testing.T) {
	var h Handlers
	at := func(after time.Duration) time.Time {
		if after == 0 {
			return time.Time{}
		}
		return now.Add(after)
	}
	for _, step := range []struct {
		after    time.Duration
		call     Call
		want     Seen // with times after now
		success  time.Duration
		failing  time.Duration
		failed   time.Duration
		slow     time.Duration
		recovers time.Duration
	}{
		{1, Call{Outcome: Failed, Gone: true, Message: "refused"}, Seen{}, 0, 0, 0, 0, 0}, // says nothing about the handler
		{2, Call{Outcome: Failed, Message: "no"}, Seen{Failures: 1, Message: "no"}, 0, 2, 2, 0, 0},
		{3, Call{}, Seen{Message: "no"}, 3, 2, 2, 0, 3},
		{4, Call{}, Seen{Message: "no"}, 4, 2, 2, 0, 3},
		{5, Call{Outcome: Refused, Message: "full"}, Seen{Failures: 1, Message: "full"}, 5, 5, 5, 0, 3}, // it answers
		{6, Call{Outcome: Ignored}, Seen{Failures: 2, Message: "full"}, 5, 5, 6, 0, 3},                  // it was not called
		{7, Call{Took: 9, Timeout: 10}, Seen{Near: 1, Message: "full"}, 7, 5, 6, 7, 7},
		{8, Call{Took: 10, Timeout: 10}, Seen{Near: 2, Message: "full"}, 8, 5, 6, 7, 7},
		{9, Call{Took: 1, Timeout: 10}, Seen{Message: "full"}, 9, 5, 6, 7, 7},
	} {
		step.call.Ended = now.Add(step.after)
		h.Record("a", step.call)
		want := step.want
		want.LastSuccess, want.FailingSince, want.LastFailed = at(step.success), at(step.failing), at(step.failed)
		want.SlowSince, want.RecoveredAt = at(step.slow), at(step.recovers)
		got := h.Of("a", now).Seen
		if seen := h.Seen("a", now); seen != got || got.Lately.Calls != uint64(step.after) {
			t.Errorf("after %d: got %+v and %+v", step.after, seen, got)
		}
		if got.Lately = (Point{}); got != want {
			t.Errorf("after %d: got\n%+v\nwant\n%+v", step.after, got, want)
		}
	}
	if n := h.DeletePartialMatch(prometheus.Labels{"handler": "a"}); n != 1 {
		t.Errorf("removed %d, want 1", n)
	}
	if n := h.DeletePartialMatch(prometheus.Labels{"handler": "a"}); n != 0 {
		t.Errorf("removed %d again", n)
	}
	if got := h.Of("a", now); !got.LastSuccess.IsZero() || h.Seen("a", now) != (Seen{}) {
		t.Error("a removed handler is still known")
	}
}

func TestServers(t *testing.T) {
	var s Servers
	for _, step := range []struct {
		after        time.Duration
		url, message string
		want         Server
		back         bool
	}{
		{1, "u", "", Server{Up: now.Add(1), Since: now.Add(1)}, false},
		{2, "", "", Server{Up: now.Add(2), Since: now.Add(1)}, false},
		{3, "u", "refused", Server{Up: now.Add(2), Down: now.Add(3), Since: now.Add(3), Message: "refused"}, false},
		{4, "", "reset", Server{Up: now.Add(2), Down: now.Add(4), Since: now.Add(3), Message: "reset"}, false},
		{5, "u", "", Server{Up: now.Add(5), Down: now.Add(4), Since: now.Add(5)}, true},
		{6, "v", "refused", Server{Down: now.Add(6), Since: now.Add(6), Message: "refused"}, false}, // another server
	} {
		if back := s.Record("a", step.url, now.Add(step.after), step.message); back != step.back || s.Of("a") != step.want {
			t.Errorf("after %d: got %+v, back %t; want %+v, back %t", step.after, s.Of("a"), back, step.want, step.back)
		}
	}
	if s.Forget("a"); s.Has("a") || s.Of("a") != (Server{}) {
		t.Error("a server that was forgotten is still known")
	}
}

func TestFailureLog(t *testing.T) {
	var l FailureLog
	for n := range 2*limits.Failures + 3 {
		for range 3 { // which count as one
			l.Add(Failure{CallID: strconv.Itoa(n), Kind: strconv.Itoa(n), Message: strings.Repeat("x", 2*limits.FailureBytes)})
		}
		got := l.List()
		if want := min(n+1, limits.Failures); len(got) != want {
			t.Fatalf("%d failures of %d, want %d", len(got), n+1, want)
		}
		for i, f := range got {
			if want := strconv.Itoa(n - i); f.CallID != want {
				t.Fatalf("failure %d of %d is %s, want %s: newest first", i, n, f.CallID, want)
			}
			if f.Times != 3 {
				t.Fatalf("failure %s has happened %d times, want 3", f.CallID, f.Times)
			}
			if len(f.Message) > limits.FailureBytes {
				t.Fatalf("a message has %d bytes, want at most %d", len(f.Message), limits.FailureBytes)
			}
		}
	}
}

func TestDiscoveries(t *testing.T) {
	var d Discoveries
	record := func(after time.Duration, url, message string) {
		d.Record("a", Discovery{At: now.Add(after), URL: url, Message: message})
	}
	for _, step := range []struct {
		after        time.Duration
		url, message string
		since        time.Duration
	}{
		{1, "u", "", 1}, {2, "u", "", 1}, {3, "u", "refused", 3}, {4, "u", "timeout", 3}, {5, "v", "timeout", 5}, {6, "v", "", 6},
	} {
		record(step.after, step.url, step.message)
		if got := d.Last()["a"].Since.Sub(now); got != step.since {
			t.Errorf("after %d: since %d, want %d", step.after, got, step.since)
		}
	}
	d.Forget("a")
	if got := d.Last(); len(got) != 0 {
		t.Errorf("got %v after all were forgotten", got)
	}
}
