// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// ownedBy is the extension of a handler, by what is behind the dot; that of rules is none.
func ownedBy(handler string) (string, bool) {
	_, extension, _ := strings.Cut(handler, ".")
	return extension, extension != "" && extension != "gone"
}

// seen returns the steps with calls of a range, by how many steps ago they were.
func seen(t *testing.T, h *History, extension, handler string, r Range, at time.Time) map[int]Step {
	t.Helper()
	steps, ok := h.Of(extension, handler, r, at)
	if !ok {
		t.Fatalf("%s %s: there is no room", extension, handler)
	}
	if want := int(r.Length / r.Step); len(steps) != want {
		t.Fatalf("%s has %d steps, want %d", r.Name, len(steps), want)
	}
	found := map[int]Step{}
	for i, s := range steps {
		if s.Calls > 0 {
			found[len(steps)-1-i] = s
		}
	}
	return found
}

// TestHistory looks at the same calls in each range, for a handler, its extension and all, when they have just ended,
// and for as long as the range has room for them.
func TestHistory(t *testing.T) {
	begin := now.Truncate(15 * time.Minute)
	var handlers Handlers
	h := NewHistory(&handlers, ownedBy)
	for i := range 100 {
		took, outcome := 10*time.Millisecond, Success
		if i >= 95 {
			took, outcome = 2*time.Second, Failed
		}
		handlers.Record("create.acme", Call{Ended: begin, Took: took, Outcome: outcome})
	}
	handlers.Record("delete.acme", Call{Ended: begin, Took: 10 * time.Millisecond})
	handlers.Record("create.quota", Call{Ended: begin, Took: 10 * time.Millisecond})
	handlers.Record("chain", Call{Ended: begin}) // of no extension
	for _, after := range []int{0, 1, 3, 4, 59, 60, 61, 239, 240, 5759, 5760} {
		at := begin.Add(time.Duration(after) * Slot)
		for _, r := range Ranges {
			ago := after / int(r.Step/Slot)
			for name, want := range map[[2]string]uint64{{"", ""}: 102, {"acme", ""}: 101, {"acme", "create.acme"}: 100, {"quota", ""}: 1} {
				found := seen(t, h, name[0], name[1], r, at)
				if ago >= int(r.Length/r.Step) {
					if len(found) != 0 {
						t.Errorf("%d slots later, %s of %q has %+v, want nothing", after, r.Name, name, found)
					}
					continue
				}
				s := found[ago]
				if len(found) != 1 || s.Calls != want {
					t.Fatalf("%d slots later, %s of %q has %+v, want %d calls %d steps ago", after, r.Name, name, found, want, ago)
				}
				if name[0] == "quota" {
					continue
				}
				if s.Failures != 5 || s.P50 < 5*time.Millisecond || s.P50 > 15*time.Millisecond || s.P99 < time.Second || s.P99 > 2*time.Second {
					t.Errorf("%d slots later, %s of %q has %+v", after, r.Name, name, s)
				}
			}
		}
	}
}

// A step counts the calls of all its slots, and what the running slot has is seen at once and counted once.
func TestHistoryAddsSlots(t *testing.T) {
	begin := now.Truncate(15 * time.Minute)
	var handlers Handlers
	h := NewHistory(&handlers, ownedBy)
	for slot := range 8 {
		at := begin.Add(time.Duration(slot) * Slot)
		handlers.Record("create.acme", Call{Ended: at, Took: time.Millisecond})
		for _, r := range Ranges {
			perStep := int(r.Step / Slot)
			if got := seen(t, h, "acme", "", r, at)[0].Calls; got != uint64(slot%perStep+1) {
				t.Errorf("slot %d: the running step of %s has %d calls, want %d", slot, r.Name, got, slot%perStep+1)
			}
		}
	}
	// Nobody has looked for a while: what Handlers remembers is collected, each slot for itself.
	handlers.Record("create.acme", Call{Ended: begin.Add(9 * Slot)})
	handlers.Record("create.acme", Call{Ended: begin.Add(11 * Slot)})
	found := seen(t, h, "", "", Ranges[0], begin.Add(12*Slot))
	for _, ago := range []int{1, 3, 5, 6, 12} {
		if found[ago].Calls != 1 {
			t.Errorf("%d slots ago: %+v, want one call", ago, found[ago])
		}
	}
	if len(found) != 10 {
		t.Errorf("%d slots with calls, want 10: %+v", len(found), found)
	}
}

func TestHistoryDropsWhatIsNotRegistered(t *testing.T) {
	var handlers Handlers
	registered := true
	h := NewHistory(&handlers, func(handler string) (string, bool) {
		extension, _ := ownedBy(handler)
		return extension, registered
	})
	handlers.Record("create.acme", Call{Ended: now})
	h.Collect(now.Add(Slot))
	if len(h.series) != 3 {
		t.Fatalf("%d series, want those of all calls, of the extension and of the handler", len(h.series))
	}
	registered = false
	h.Collect(now.Add(2 * Slot))
	if len(h.series) != 1 || seen(t, h, "", "", Ranges[0], now.Add(2*Slot))[2].Calls != 1 {
		t.Errorf("%d series, want that of all calls alone, as it was", len(h.series))
	}
}

// TestHistoryIsBounded calls more handlers than there is room for.
func TestHistoryIsBounded(t *testing.T) {
	var handlers Handlers
	h := NewHistory(&handlers, ownedBy)
	for i := range limits.HistorySeries {
		handlers.Record(fmt.Sprintf("h.x%d", i), Call{Ended: now})
	}
	h.Collect(now.Add(Slot))
	if len(h.series) > limits.HistorySeries || len(h.series) < limits.HistorySeries-1 {
		t.Errorf("%d series, want %d", len(h.series), limits.HistorySeries)
	}
	if got := seen(t, h, "", "", Ranges[0], now.Add(Slot))[1].Calls; got != limits.HistorySeries {
		t.Errorf("all together have %d calls, want %d", got, limits.HistorySeries)
	}
	missed := 0
	for i := range limits.HistorySeries {
		if _, ok := h.Of(fmt.Sprintf("x%d", i), "", Ranges[0], now.Add(Slot)); !ok {
			missed++
		}
	}
	if missed == 0 || missed == limits.HistorySeries {
		t.Errorf("there is no room for %d of %d", missed, limits.HistorySeries)
	}
	x := newSeries()
	bytes := int(unsafe.Sizeof(*x)) + int(unsafe.Sizeof(key{}))
	for i := range x {
		bytes += cap(x[i].points) * int(unsafe.Sizeof(point{}))
	}
	if bytes > 4200 || bytes < 4100 {
		t.Errorf("a series takes %d bytes, and the table of limits says 4,200", bytes)
	}
}

// TestHistoryWhileCalled records while slots are collected: each call is counted once.
func TestHistoryWhileCalled(t *testing.T) {
	var handlers Handlers
	h := NewHistory(&handlers, ownedBy)
	const callers, calls = 4, 500
	handlers.Record("h.acme", Call{Ended: now})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range calls {
				handlers.Record("h.acme", Call{Ended: now})
			}
		})
	}
	running.Go(func() {
		for i := range 6 {
			h.Collect(now.Add(time.Duration(i) * Slot))
		}
	})
	running.Wait()
	var sum uint64
	for _, s := range seen(t, h, "", "", Ranges[0], now.Add(6*Slot)) {
		sum += s.Calls
	}
	if sum != 1+callers*calls {
		t.Errorf("%d calls, want %d", sum, 1+callers*calls)
	}
}

func TestChanges(t *testing.T) {
	var c Changes
	at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	for n := range limits.Changes + 3 {
		c.Add(Change{At: at(n), Text: strconv.Itoa(n)})
	}
	c.Add(Change{At: at(1000), Text: strings.Repeat("x", 2*limits.ChangeBytes), Of: []string{"acme"}})
	all := c.Since(time.Time{}, "")
	if len(all) != limits.Changes || all[0].Text != "4" || len(all[len(all)-1].Text) != limits.ChangeBytes {
		t.Errorf("%d changes from %q to %q, want the last %d, oldest first", len(all), all[0].Text, all[len(all)-1].Text, limits.Changes)
	}
	if got := c.Since(at(limits.Changes), "quota"); len(got) != 3 {
		t.Errorf("%d changes are about quota, want the 3 that are about all extensions", len(got))
	}
	if got := c.Since(at(limits.Changes), "acme"); len(got) != 4 {
		t.Errorf("%d changes are about acme, want 4", len(got))
	}
}
