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

func TestHandlersSayWhatWasSeenLast(t *testing.T) {
	var h Handlers
	for _, step := range []struct {
		after               time.Duration
		outcome             Outcome
		down                bool
		up, lastDown, since time.Duration // 0 for never
	}{
		{1, Failed, false, 0, 0, 0}, // an error of the request says nothing
		{2, Success, false, 2, 0, 2},
		{3, Success, false, 3, 0, 2},
		{4, Failed, true, 3, 4, 4},
		{5, Ignored, true, 3, 5, 4},
		{6, Ignored, false, 3, 5, 4},
		{7, Refused, false, 7, 5, 7}, // an extension that answers Failure works
		{8, Failed, true, 7, 8, 8},
	} {
		h.Record("a", Call{Ended: now.Add(step.after), Outcome: step.outcome, Down: step.down})
		of := h.Of("a", now)
		if got := h.Seen("a"); got != of.Seen {
			t.Errorf("after %d: seen %+v, want %+v", step.after, got, of.Seen)
		}
		for what, times := range map[string]struct {
			got  time.Time
			want time.Duration
		}{"last success": {of.LastSuccess, step.up}, "last down": {of.LastDown, step.lastDown}, "since": {of.Since, step.since}} {
			if times.want == 0 && !times.got.IsZero() || times.want != 0 && !times.got.Equal(now.Add(times.want)) {
				t.Errorf("after %d: %s: %d, want %d", step.after, what, times.got.Sub(now), times.want)
			}
		}
	}
	if n := h.DeletePartialMatch(prometheus.Labels{"handler": "a"}); n != 1 {
		t.Errorf("removed %d, want 1", n)
	}
	if n := h.DeletePartialMatch(prometheus.Labels{"handler": "a"}); n != 0 {
		t.Errorf("removed %d again", n)
	}
	if got := h.Of("a", now); !got.LastSuccess.IsZero() || h.Seen("a") != (Seen{}) {
		t.Error("a removed handler is still known")
	}
}

func TestFailureLog(t *testing.T) {
	var l FailureLog
	for n := range 2*Failures + 3 {
		for range 3 { // which count as one
			l.Add(Failure{CallID: strconv.Itoa(n), Kind: strconv.Itoa(n), Message: strings.Repeat("x", 2*messageBytes)})
		}
		got := l.List()
		if want := min(n+1, Failures); len(got) != want {
			t.Fatalf("%d failures of %d, want %d", len(got), n+1, want)
		}
		for i, f := range got {
			if want := strconv.Itoa(n - i); f.CallID != want {
				t.Fatalf("failure %d of %d is %s, want %s: newest first", i, n, f.CallID, want)
			}
			if f.Times != 3 {
				t.Fatalf("failure %s has happened %d times, want 3", f.CallID, f.Times)
			}
			if len(f.Message) > messageBytes {
				t.Fatalf("a message has %d bytes, want at most %d", len(f.Message), messageBytes)
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
