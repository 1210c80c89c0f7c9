// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Range is a length of time that a History looks back at, in equal steps.
type Range struct {
	Name         string
	Length, Step time.Duration
}

// Ranges are the ranges of a History, the shortest first. Their steps are multiples of Slot.
var Ranges = [...]Range{
	{"15m", 15 * time.Minute, Slot},
	{"1h", time.Hour, time.Minute},
	{"24h", 24 * time.Hour, 15 * time.Minute},
}

// Step describes the calls of one step of a Range.
type Step struct {
	Calls, Failures uint64
	P50, P99        time.Duration // 0 without calls
}

// History keeps the calls of the last day: of all extensions together, of each extension and of each handler, as far as
// there is room. It costs calls nothing: it collects the slots that Handlers has counted anyway, as soon as each has
// ended. Calls of the running slot are lost if their handler is removed meanwhile. It is safe for concurrent use.
type History struct {
	handlers *Handlers
	owner    func(handler string) (extension string, ok bool)

	mu     sync.Mutex
	last   int64 // the number of the slot that was collected last
	series map[key]*series
}

// key names a series: of one handler by its registered name, of an extension, or of all if both are empty.
type key struct{ extension, handler string }

// NewHistory returns a History of calls. owner returns the extension of a registered handler; other handlers are not
// counted.
func NewHistory(handlers *Handlers, owner func(handler string) (extension string, ok bool)) *History {
	return &History{handlers: handlers, owner: owner, series: map[key]*series{{}: newSeries()}}
}

// Collect takes over the slots that have ended. It must be called more often than Handlers forgets them, which is every
// five minutes.
func (h *History) Collect(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.collect(number(now))
}

func (h *History) collect(now int64) {
	first := max(h.last+1, now-Slots+1)
	if first >= now {
		return
	}
	h.drop()
	for n := first; n < now; n++ {
		h.handlers.slots(n, now, func(handler string, s *slot) {
			extension, ok := h.owner(handler)
			if !ok {
				return
			}
			for _, k := range [...]key{{}, {extension: extension}, {extension, handler}} {
				if x := h.at(k); x != nil {
					x.add(n, s)
				}
			}
		})
	}
	h.last = now - 1
}

// drop drops the series of handlers that are not registered any more, and of extensions without handlers.
func (h *History) drop() {
	kept := map[string]bool{"": true}
	for k := range h.series {
		if k.handler == "" {
			continue
		}
		if extension, ok := h.owner(k.handler); ok && extension == k.extension {
			kept[extension] = true
		} else {
			delete(h.series, k)
		}
	}
	for k := range h.series {
		if k.handler == "" && !kept[k.extension] {
			delete(h.series, k)
		}
	}
}

// at returns a series, which is nil if there is no room for it. An extension gets one with room for that of a handler.
func (h *History) at(k key) *series {
	x, ok := h.series[k]
	if !ok {
		needs := 1
		if k.handler == "" {
			needs = 2
		}
		if len(h.series)+needs > limits.HistorySeries {
			return nil
		}
		x = newSeries()
		h.series[k] = x
	}
	return x
}

// Of returns the steps of a range up to now, oldest first, of the calls to one handler, to those of an extension, or to
// all if both are empty. The last step is still running. ok is false if there was no room for them.
func (h *History) Of(extension, handler string, r Range, now time.Time) (steps []Step, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := number(now)
	h.collect(n)
	var running slot
	h.handlers.slots(n, n, func(name string, s *slot) {
		if handler != "" && name != handler {
			return
		}
		if of, known := h.owner(name); known && (extension == "" || of == extension) {
			running.add(s)
		}
	})
	x, found := h.series[key{extension, handler}]
	if !found {
		x, found = newSeries(), len(h.series)+1 < limits.HistorySeries
	}
	for i := range x {
		if Ranges[i] == r {
			return x[i].steps(n/perStep(r), running), found
		}
	}
	return nil, false
}

// slots calls f for each handler that was called in slot n, up to the slot now, which must be one of the last Slots.
func (r *Handlers) slots(n, now int64, f func(handler string, s *slot)) {
	r.handlers.Range(func(name, value any) bool {
		h, _ := value.(*handler)
		if s := h.slot(n, now); s.calls > 0 {
			text, _ := name.(string)
			f(text, &s)
		}
		return true
	})
}

// slot returns slot n. A call that ends in it from now on counts to the slot now.
func (h *handler) slot(n, now int64) slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.window.slots == nil {
		return slot{}
	}
	if h.window.advance(now); n <= h.window.last-Slots {
		return slot{}
	}
	return h.window.slots[n%Slots]
}

// series has the calls of each of the Ranges.
type series [len(Ranges)]ring

func newSeries() *series {
	x := new(series)
	for i := range x {
		x[i].points = make([]point, Ranges[i].Length/Ranges[i].Step)
	}
	return x
}

// add adds the calls of slot n, which is not before one that was added earlier.
func (x *series) add(n int64, s *slot) {
	for i := range x {
		x[i].advance(n / perStep(Ranges[i]))
		x[i].running.add(s)
	}
}

func perStep(r Range) int64 { return int64(r.Step / Slot) }

// ring has the last steps of a range: what there is to draw of those that have ended, and all of the running one.
type ring struct {
	points  []point
	last    int64 // the number of the running step, since 1970
	running slot
}

// point is a Step in as few bytes as it needs.
type point struct {
	calls, failures uint32
	p50, p99        float32 // in seconds
}

// advance makes a step the running one.
func (r *ring) advance(step int64) {
	if step <= r.last {
		return
	}
	size := int64(len(r.points))
	r.points[r.last%size] = pointOf(&r.running)
	for n := max(r.last+1, step-size+1); n < step; n++ {
		r.points[n%size] = point{}
	}
	r.last, r.running = step, slot{}
}

// steps returns the steps up to the running one, to which it adds what is not in the ring.
func (r *ring) steps(now int64, more slot) []Step {
	r.advance(now)
	more.add(&r.running)
	size := int64(len(r.points))
	steps := make([]Step, 0, size)
	for n := r.last - size + 1; n < r.last; n++ {
		steps = append(steps, r.points[n%size].step())
	}
	last := pointOf(&more)
	return append(steps, last.step())
}

func (p point) step() Step {
	return Step{uint64(p.calls), uint64(p.failures), inDuration(p.p50), inDuration(p.p99)}
}

func inDuration(seconds float32) time.Duration {
	return time.Duration(float64(seconds) * float64(time.Second))
}

func pointOf(s *slot) point {
	if s.calls == 0 {
		return point{}
	}
	var took [buckets]uint64
	for b, n := range s.took {
		took[b] = uint64(n)
	}
	in := func(q float64) float32 { return float32(quantile(&took, q, s.longest).Seconds()) }
	return point{s.calls, s.failures, in(.5), in(.99)}
}

// add adds the calls of another slot.
func (s *slot) add(o *slot) {
	s.calls, s.failures, s.near = s.calls+o.calls, s.failures+o.failures, s.near+o.near
	s.longest = max(s.longest, o.longest)
	for b, n := range o.took {
		s.took[b] += n
	}
}
