// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// oneTurn returns a budget with one turn, of two processors.
func oneTurn() *Budget {
	b := New(total)
	b.scheduler.limit, b.scheduler.all, b.scheduler.processors = 1, 1, 2
	return b
}

// begun returns work of an account that has its turn.
func begun(t *testing.T, b *Budget, who Account) *Work {
	t.Helper()
	w := mustReserve(t, b, who, mib).Work(t.Context())
	if err := w.Step(); err != nil {
		t.Fatal(err)
	}
	return &w
}

func wantNoTurns(t *testing.T, b *Budget) {
	t.Helper()
	if s := b.scheduler; s.taken != 0 || len(s.order) != 0 || len(s.lines) != 0 || s.waiting.Load() != 0 {
		t.Errorf("left behind: %d turns, %d accounts in order, %d lines, %d waiting", s.taken, len(s.order), len(s.lines), s.waiting.Load())
	}
}

func TestOneProcessorIsLeftToSmallCalls(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7} {
		runtime.GOMAXPROCS(processors)
		if got := newScheduler(); got.limit != want || got.all != processors {
			t.Errorf("%d processors: %d turns, %d in a quiet time, want %d and all", processors, got.limit, got.all, want)
		}
	}
}

// Heavy work has all processors until a small call has ended, and again once none has for a while.
func TestHeavyWorkHasAllProcessorsWhileItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		b.scheduler.limit, b.scheduler.all, b.scheduler.processors = 1, 2, 2
		smallCall := func() { mustReserve(t, b, slow, CallBytes).Release() }
		first, second := begun(t, b, alice), begun(t, b, bob)
		smallCall()
		stepped := false
		go func() {
			if err := second.Step(); err != nil {
				t.Error(err)
			}
			stepped = true
		}()
		synctest.Wait()
		if second.has || stepped {
			t.Error("after a small call, both still have a turn")
		}
		if err := first.Step(); err != nil || !first.has {
			t.Errorf("the other one lost its turn: %v", err)
		}
		time.Sleep(quiet - 1)
		first.End()
		synctest.Wait()
		if !stepped {
			t.Fatal("the turn is not handed on")
		}
		third := false
		go func() {
			w := begun(t, b, alice)
			third = true
			w.End()
		}()
		synctest.Wait()
		if third {
			t.Error("a moment before the time is over, a second one has a turn")
		}
		time.Sleep(time.Nanosecond)
		fourth := begun(t, b, slow) // after the one that waited has had its turn
		if !third {
			t.Error("the one that waited does not go on")
		}
		fourth.End()
		second.End()
		large := mustReserve(t, b, slow, CallBytes)
		if err := large.Grow(t.Context(), 4*Step); err != nil {
			t.Fatal(err)
		}
		large.Release()
		if b.scheduler.allowed() != 2 {
			t.Error("a large call counts as a small one")
		}
		synctest.Wait()
		wantNoTurns(t, b)
	})
}

// An account with many pieces of work keeps another one waiting for one of them, not for all.
func TestAccountsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := oneTurn()
		first := begun(t, b, alice)
		var order []string
		for _, piece := range []struct {
			name string
			who  Account
		}{{"alice 1", alice}, {"alice 2", alice}, {"alice 3", alice}, {"bob 1", bob}, {"bob 2", bob}, {"slow", slow}} {
			go func() {
				w := begun(t, b, piece.who)
				order = append(order, piece.name) // one at a time has the turn
				w.End()
			}()
			synctest.Wait() // it waits behind those before
		}
		if len(order) > 0 {
			t.Errorf("%v have a turn while another has the only one", order)
		}
		first.End()
		synctest.Wait()
		if want := []string{"alice 1", "bob 1", "slow", "alice 2", "bob 2", "alice 3"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
		wantNoTurns(t, b)
	})
}

// A long piece of work lets other accounts go first after a while, and is in no hurry for further work of its own
// account.
func TestLongWorkHandsItsTurnOver(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		other Account
		hands bool
	}{
		"Early":       {slice, bob, false},
		"Late":        {slice + 1, bob, true},
		"SameAccount": {slice + 1, alice, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := oneTurn()
				long := begun(t, b, alice)
				went := false
				go func() {
					w := begun(t, b, tc.other)
					went = true
					w.End()
				}()
				synctest.Wait()
				time.Sleep(tc.after)
				if err := long.Step(); err != nil {
					t.Fatal(err)
				}
				if went != tc.hands {
					t.Errorf("the other one had its turn: %t, want %t", went, tc.hands)
				}
				if !long.has {
					t.Error("the long piece goes on without a turn")
				}
				long.End()
				synctest.Wait()
				wantNoTurns(t, b)
			})
		})
	}
}

// Waiting for a turn ends with the context, and gives the place back.
func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := oneTurn()
		busy := begun(t, b, alice)
		memory := mustReserve(t, b, bob, mib)
		const patience = time.Second
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		w := memory.Work(ctx)
		if err := w.Step(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != patience {
			t.Errorf("after %s: got %v", time.Since(began), err)
		}
		if !w.Waited() || w.has {
			t.Errorf("it waited: %t, it has a turn: %t", w.Waited(), w.has)
		}
		ctx, cancel = context.WithCancel(t.Context())
		w = memory.Work(ctx)
		time.AfterFunc(patience, cancel)
		if err := w.Step(); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that leaves: got %v", err)
		}
		if err := w.Step(); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left: got %v", err)
		}
		if u := b.Usage(); u.Waited != 2 || u.WaitedFor != 2*patience {
			t.Errorf("%d pieces have waited for %s", u.Waited, u.WaitedFor)
		}
		busy.End()
		w = memory.Work(t.Context())
		if err := w.Step(); err != nil || w.Waited() {
			t.Errorf("a free turn: got %v, waited %t", err, w.Waited())
		}
		w.End()
		wantNoTurns(t, b)
	})
}

// Work that waits for the network has no turn, and waits for another one afterwards only if it had one.
func TestNoTurnIsHeldWhileWaitingForTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := oneTurn()
		reading := begun(t, b, alice)
		reading.Pause()
		other := begun(t, b, bob)
		resumed := false
		go func() {
			if err := reading.Resume(); err != nil {
				t.Error(err)
			}
			resumed = true
		}()
		synctest.Wait()
		if resumed {
			t.Error("two pieces have the only turn")
		}
		other.End()
		synctest.Wait()
		if !resumed || !reading.has {
			t.Errorf("it goes on: %t, with a turn: %t", resumed, reading.has)
		}
		reading.End()
		reading.Pause()
		if err := reading.Resume(); err != nil || reading.has {
			t.Errorf("a piece without a turn takes one to go on: %v", err)
		}
		wantNoTurns(t, b)
	})
}

// With one processor, long work leaves it alone now and then.
func TestLongWorkRestsOnOneProcessor(t *testing.T) {
	for processors, want := range map[int]time.Duration{1: rest, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := oneTurn()
			b.scheduler.processors = processors
			w := begun(t, b, alice)
			for _, step := range []struct{ after, rests time.Duration }{{busy, 0}, {1, want}, {busy, 0}} {
				time.Sleep(step.after)
				began := time.Now()
				if err := w.Step(); err != nil || time.Since(began) != step.rests {
					t.Errorf("%d processors, %s later: rests for %s, %v, want %s", processors, step.after, time.Since(began), err, step.rests)
				}
			}
			w.End()
		})
	}
}

// However pieces come, go and give up, no turn is lost, and there are never more than there may be.
func TestTurnsAreNotLost(t *testing.T) {
	b := New(total)
	b.scheduler.limit, b.scheduler.processors = 3, 4
	var running sync.WaitGroup
	var mu sync.Mutex
	working := 0
	for i := range 16 {
		memory := mustReserve(t, b, []Account{alice, bob, slow}[i%3], 1<<10)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		running.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Microsecond)
				w := memory.Work(ctx)
				for range random.IntN(4) {
					if w.Step() != nil {
						break
					}
					mu.Lock()
					if working++; working > 3 {
						t.Errorf("%d pieces have a turn", working)
					}
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					working--
					mu.Unlock()
				}
				w.End()
				cancel()
			}
		})
	}
	running.Wait()
	wantNoTurns(t, b)
}

func TestWorkWithoutABudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	work := (*Reservation)(nil).Work(ctx)
	charged := (*Charge)(nil).Work(ctx)
	for _, w := range []*Work{&work, &charged, {}, nil} {
		if err := w.Step(); err != nil {
			t.Errorf("got %v", err)
		}
		w.End()
	}
	cancel()
	for _, w := range []*Work{&work, &charged} {
		if err := w.Step(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: got %v", err)
		}
	}
}
