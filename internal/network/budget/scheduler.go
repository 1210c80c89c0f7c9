// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// Step is the number of bytes that a piece of work processes between two calls of Work.Step, and that it needs no
	// turn for: less than a millisecond of work.
	Step = limits.HeavyBytes
	// slice is how long a piece of work has its turn if pieces of other accounts wait.
	slice = limits.HeavyTurn
	// With a single processor, work that has taken busy pauses for rest, so that others get the processor at all: Go's
	// scheduler looks for what the network has brought only when nothing else can run, or after 10 ms.
	busy = 4 * time.Millisecond
	rest = 200 * time.Microsecond
	// quiet is how long no small call may have ended before heavy work has all processors.
	quiet = limits.HeavyQuiet
)

// scheduler shares the processors between the heavy work of all calls: inflating, reading and converting large bodies.
// While small calls come, one processor stays free of it, so that their many small steps, each of which has to be
// scheduled, do not wait behind it. Accounts take turns, whatever the number of their calls; the pieces of one account
// are done one after the other.
//
// What waits already has memory, so that the budget bounds how much that is. Without the scheduler, the p99 of healthy
// callers beside bombs of gzip and JSON was 261 to 357 ms in the suite of faults, where it is 17 to 32.
type scheduler struct {
	limit      int // while small calls come
	all        int // while none do
	processors int
	small      atomic.Int64 // when a small call ended last, in nanoseconds since began, and one more; 0 for never
	began      time.Time

	mu      sync.Mutex
	taken   int
	order   []*line // accounts with pieces that wait; the first one is next
	lines   map[Account]*line
	waiting atomic.Int64 // len(order), to look at without the lock

	waited    atomic.Int64 // pieces that have waited
	waitedFor atomic.Int64 // how long, in nanoseconds
}

// line holds the pieces of work of one account that wait, in their order.
type line struct {
	account Account
	pieces  []chan struct{}
}

// newScheduler returns the scheduler of this process, which gives at least one turn.
func newScheduler() *scheduler {
	processors := runtime.GOMAXPROCS(0)
	return &scheduler{
		limit: max(1, processors-1), all: processors, processors: processors, began: time.Now(), lines: map[Account]*line{},
	}
}

// ended notes that a small call has ended.
func (s *scheduler) ended() { s.small.Store(int64(time.Since(s.began)) + 1) }

// allowed returns how many turns there are now.
func (s *scheduler) allowed() int {
	if s.all == s.limit {
		return s.limit
	}
	if last := s.small.Load(); last != 0 && time.Since(s.began)-time.Duration(last-1) < quiet {
		return s.limit
	}
	return s.all
}

// take takes a turn, and reports whether it had to wait for one. The error is that of ctx.
func (s *scheduler) take(ctx context.Context, who Account) (waited bool, err error) {
	s.mu.Lock()
	if len(s.order) == 0 && s.taken < s.allowed() {
		s.taken++
		s.mu.Unlock()
		return false, nil
	}
	granted := s.enqueue(who)
	s.grant() // there may be more turns than before
	s.mu.Unlock()
	began := time.Now()
	defer func() {
		s.waited.Add(1)
		s.waitedFor.Add(int64(time.Since(began)))
	}()
	select {
	case <-granted:
		return true, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted: // at the same moment
		s.give()
	default:
		s.remove(who, granted)
	}
	return true, ctx.Err()
}

// enqueue adds a piece at the end of its account's line.
func (s *scheduler) enqueue(who Account) chan struct{} {
	l := s.lines[who]
	if l == nil {
		l = &line{account: who}
		s.lines[who] = l
		s.order = append(s.order, l)
		s.waiting.Store(int64(len(s.order)))
	}
	granted := make(chan struct{})
	l.pieces = append(l.pieces, granted)
	return granted
}

// remove removes a piece that waits no longer.
func (s *scheduler) remove(who Account, piece chan struct{}) {
	l := s.lines[who]
	for i, other := range l.pieces {
		if other == piece {
			l.pieces = append(l.pieces[:i], l.pieces[i+1:]...)
			break
		}
	}
	if len(l.pieces) > 0 {
		return
	}
	for i, other := range s.order {
		if other == l {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	s.forget(l)
}

func (s *scheduler) forget(l *line) {
	delete(s.lines, l.account)
	s.waiting.Store(int64(len(s.order)))
}

// release ends a turn.
func (s *scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give()
}

// give ends a turn.
func (s *scheduler) give() {
	s.taken--
	s.grant()
}

// grant hands the turns that there are now to the next accounts, whose further pieces then wait for the others'.
func (s *scheduler) grant() {
	if len(s.order) == 0 {
		return
	}
	for allowed := s.allowed(); s.taken < allowed && len(s.order) > 0; s.taken++ {
		l := s.order[0]
		s.order = s.order[1:]
		close(l.pieces[0])
		if l.pieces = l.pieces[1:]; len(l.pieces) > 0 {
			s.order = append(s.order, l)
			continue
		}
		s.forget(l)
	}
}

// tooMany reports whether a piece has a turn that there is no more, because small calls have come.
func (s *scheduler) tooMany() bool {
	if s.all == s.limit || s.allowed() == s.all {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken > s.limit
}

// othersWait reports whether a piece of another account waits.
func (s *scheduler) othersWait(who Account) bool {
	if s.waiting.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order) > 1 || len(s.order) == 1 && s.order[0].account != who
}

// Work is the heavy work of one call, a piece after the other. It belongs to one goroutine. The zero value and a nil
// Work bound nothing.
type Work struct {
	scheduler *scheduler
	ctx       context.Context
	account   Account
	has       bool // the turn
	paused    bool
	waited    bool
	since     time.Time // when it got its turn, or last had a rest
}

// Work returns the work that a call does for its caller, within ctx.
func (r *Reservation) Work(ctx context.Context) Work {
	if r == nil {
		return Work{ctx: ctx}
	}
	return Work{scheduler: r.budget.scheduler, ctx: ctx, account: r.account}
}

// Work returns the work that a call does for its extension, within ctx.
func (c *Charge) Work(ctx context.Context) Work {
	if c == nil {
		return Work{ctx: ctx}
	}
	return Work{scheduler: c.call.budget.scheduler, ctx: ctx, account: c.account}
}

// Heavy reports whether the request of the call is so large that work with it is heavy.
func (c *Charge) Heavy() bool { return c != nil && c.parked > 4*Step }

// Step is called whenever a piece of work has processed Step bytes, or is about to process more than that at once. It
// waits for a turn if the piece has none, and lets others go first if it has had one for long. It returns the error of
// the context if that is done. Small pieces never call it, so that they never wait.
func (w *Work) Step() error {
	if w == nil || w.ctx == nil {
		return nil
	}
	if err := w.ctx.Err(); err != nil || w.scheduler == nil {
		return err
	}
	if !w.has {
		return w.take()
	}
	switch took := time.Since(w.since); {
	case took > slice && w.scheduler.othersWait(w.account), w.scheduler.tooMany():
		w.End()
		return w.take()
	case took > busy && w.scheduler.processors == 1:
		time.Sleep(rest)
		w.since = time.Now()
	}
	return nil
}

func (w *Work) take() error {
	waited, err := w.scheduler.take(w.ctx, w.account)
	w.waited = w.waited || waited
	if err != nil {
		return err
	}
	w.has, w.since = true, time.Now()
	return nil
}

// Waited reports whether the work has waited for a turn, so that a deadline that has passed says little about others.
func (w *Work) Waited() bool { return w.waited }

// Pause gives the turn back before the piece of work waits for the network, and Resume waits for another one if Pause
// has.
func (w *Work) Pause() {
	w.paused = w.has
	w.End()
}

// Resume returns the same errors as Step.
func (w *Work) Resume() error {
	if !w.paused {
		return nil
	}
	w.paused = false
	return w.Step()
}

// End ends a piece of work: the turn is given back. It has no effect on a piece without one.
func (w *Work) End() {
	if w != nil && w.has {
		w.has = false
		w.scheduler.release()
	}
}
