// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"math/bits"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// Slot is the length of a part of the time that is looked back at.
	Slot = limits.StatusWindow / Slots
	// Slots is the number of these parts, five minutes in all.
	Slots = 20
	// near is the part of a handler's timeout from which on a call counts as near it.
	near = 0.8
	// Calls are counted in buckets of a duration each, which grow by powers of two from 2^firstBit ns, 131 µs, to more
	// than the 30 s that a call may take, with two buckets for each power.
	firstBit = 17
	buckets  = 2*19 + 1
)

// window counts the calls of the last minutes. Its zero value has none.
type window struct {
	slots []slot // made for the first call
	last  int64  // the number of the slot that was written last, since 1970
}

// slot counts the calls of one Slot.
type slot struct {
	calls, failures, near uint32
	longest               time.Duration
	took                  [buckets]uint32
}

// IsNear reports whether a call that took so long was near its timeout: from eight tenths of it on.
func IsNear(took, timeout time.Duration) bool {
	return timeout > 0 && float64(took) >= near*float64(timeout)
}

func number(t time.Time) int64 { return t.UnixNano() / int64(Slot) }

// advance makes the slot of a time the last one, and empties those that are too old.
func (w *window) advance(now int64) {
	for n := max(w.last+1, now-Slots+1); n <= now; n++ {
		w.slots[n%Slots] = slot{}
	}
	w.last = max(w.last, now)
}

func (w *window) add(c Call) {
	now := number(c.Ended)
	if w.slots == nil {
		w.slots, w.last = make([]slot, Slots), now
	}
	w.advance(now)
	s := &w.slots[w.last%Slots]
	s.calls++
	if c.Outcome != Success {
		s.failures++
	}
	if IsNear(c.Took, c.Timeout) {
		s.near++
	}
	s.longest = max(s.longest, c.Took)
	s.took[bucket(c.Took)]++
}

// bucket returns the bucket of a duration: its power of two, and the half of it.
func bucket(d time.Duration) int {
	n := uint64(max(d, 0)) >> (firstBit - 1)
	length := bits.Len64(n)
	if length <= 1 {
		return 0
	}
	half := int(n>>(length-2)) & 1
	return min(2*(length-2)+half+1, buckets-1)
}

// lower returns the least duration of a bucket.
func lower(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	power, half := (bucket-1)/2, (bucket-1)%2
	return time.Duration(2+half) << (power + firstBit - 1)
}

// Calls counts the calls of some minutes.
type Calls struct {
	// Points has the calls of each Slot, oldest first. The last one is still running.
	Points []Point
	took   [buckets]uint64
	// longest is what no percentile is beyond, though buckets are.
	longest time.Duration
}

// Point counts the calls of a Slot.
type Point struct {
	Calls, Failures, Near uint64
	P99                   time.Duration // 0 without calls
}

// calls returns the calls up to now.
func (w *window) calls(now time.Time) Calls {
	if w.slots == nil {
		return Calls{}
	}
	w.advance(number(now))
	c := Calls{Points: make([]Point, Slots)}
	for i := range c.Points {
		s := &w.slots[(w.last+1+int64(i))%Slots]
		c.Points[i] = Point{Calls: uint64(s.calls), Failures: uint64(s.failures), Near: uint64(s.near)}
		var took [buckets]uint64
		for b, n := range s.took {
			took[b] = uint64(n)
			c.took[b] += uint64(n)
		}
		c.Points[i].P99 = quantile(&took, .99, s.longest)
		c.longest = max(c.longest, s.longest)
	}
	return c
}

// total returns the sum of the calls up to now, without a percentile.
func (w *window) total(now time.Time) Point {
	var sum Point
	if w.slots == nil {
		return sum
	}
	w.advance(number(now))
	for i := range w.slots {
		s := &w.slots[i]
		sum.Calls += uint64(s.calls)
		sum.Failures += uint64(s.failures)
		sum.Near += uint64(s.near)
	}
	return sum
}

// Add adds the calls of another handler. The 99th percentile of a point becomes the greater one.
func (c *Calls) Add(other *Calls) {
	if c.Points == nil && other.Points != nil {
		c.Points = make([]Point, Slots)
	}
	for i := range other.Points {
		p, o := &c.Points[i], &other.Points[i]
		p.Calls, p.Failures, p.Near = p.Calls+o.Calls, p.Failures+o.Failures, p.Near+o.Near
		p.P99 = max(p.P99, o.P99)
	}
	for b, n := range other.took {
		c.took[b] += n
	}
	c.longest = max(c.longest, other.longest)
}

// Total returns the sum of all points, without a percentile.
func (c *Calls) Total() Point {
	var sum Point
	for _, p := range c.Points {
		sum.Calls, sum.Failures, sum.Near = sum.Calls+p.Calls, sum.Failures+p.Failures, sum.Near+p.Near
	}
	return sum
}

// Quantile returns the duration that a part q of the calls did not exceed, to within a half, and 0 without calls. It is
// no longer than the longest call.
func (c *Calls) Quantile(q float64) time.Duration { return quantile(&c.took, q, c.longest) }

func quantile(took *[buckets]uint64, q float64, longest time.Duration) time.Duration {
	var total uint64
	for _, n := range took {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank, below := q*float64(total), float64(0)
	for b, n := range took {
		if n > 0 && below+float64(n) >= rank {
			within := (rank - below) / float64(n)
			return min(longest, lower(b)+time.Duration(within*float64(lower(b+1)-lower(b))))
		}
		below += float64(n)
	}
	return longest
}
