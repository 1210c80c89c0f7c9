// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/hook"
)

const (
	mib   = 1 << 20
	total = 100 * mib
)

var (
	alice = Caller("alice")
	bob   = Caller("bob")
	slow  = Extension("slow")
	quick = Extension("quick")
)

// mustReserve reserves what has to be there.
func mustReserve(t *testing.T, b *Budget, who Account, bytes int64) *Reservation {
	t.Helper()
	r, err := b.Reserve(t.Context(), who, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantOverloaded(t *testing.T, err error, text string) {
	t.Helper()
	var e *hook.Error
	if !errors.As(err, &e) || e.Kind != hook.Overloaded || !strings.Contains(e.Message, text) || e.RetryAfter < time.Second {
		t.Errorf("got %v (%+v), want Overloaded: %s", err, e, text)
	}
}

func wantUsed(t *testing.T, b *Budget, want int64) {
	t.Helper()
	if u := b.Usage(); u.Used != want {
		t.Errorf("%d bytes are in use, want %d", u.Used, want)
	}
	if want == 0 && len(b.accounts) > 0 {
		t.Errorf("%d accounts are left", len(b.accounts))
	}
}

// soon is a context whose deadline leaves no time to wait.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	t.Cleanup(cancel)
	return ctx
}

// Each bound holds exactly: of the budget, of its parts for admission and for those admitted, and of both shares. Large
// calls leave room for small ones, which the hosts that take all they can get cannot take from others.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		mustReserve(t, b, alice, 75*mib-1)
		if _, err := b.Reserve(t.Context(), alice, 2); err == nil {
			t.Error("a caller has more than its share")
		} else {
			wantOverloaded(t, err, "the caller's share")
		}
		mustReserve(t, b, alice, 1)
		r := mustReserve(t, b, bob, 5*mib)
		_, err := b.Reserve(t.Context(), bob, littleHeld+1)
		wantOverloaded(t, err, "the gateway's memory for calls is used up")
		if err := r.Grow(t.Context(), 10*mib); err != nil {
			t.Error(err)
		}
		wantOverloaded(t, r.Grow(t.Context(), 1), "the gateway's memory for calls is used up")
		for range 16 { // 5 MiB of calls that need little
			mustReserve(t, b, Caller("carol"), littleHeld)
		}
		_, err = b.Reserve(t.Context(), bob, CallBytes+1)
		wantOverloaded(t, err, "the gateway's memory for calls is used up")
		for range 80 { // 5 MiB of calls that need the least
			mustReserve(t, b, Caller("dave"), CallBytes)
		}
		_, err = b.Reserve(t.Context(), bob, 1)
		wantOverloaded(t, err, "the gateway's memory for calls is used up")
		wantUsed(t, b, total)
		if u := b.Usage(); u.Limit != total || u.Refused["caller"] != 1 || u.Refused["total"] != 4 {
			t.Errorf("got %+v", u)
		}
	})
}

// A call that disturbs no other may use more than the share of its account, up to the whole budget.
func TestLoneCalls(t *testing.T) {
	b := New(total)
	r := mustReserve(t, b, alice, 90*mib) // more than may be admitted while another is there
	if err := r.Grow(t.Context(), 10*mib); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"more than all": r.Grow(t.Context(), 1),
		"at once":       func() error { _, err := b.Reserve(t.Context(), bob, total+1); return err }(),
	} {
		if hook.KindOf(err) != hook.TooLarge { // there will not be room later either
			t.Errorf("%s: got %v", name, err)
		}
	}
	r.Shrink(40 * mib)
	wantUsed(t, b, 60*mib)
	if err := r.Grow(t.Context(), 40*mib); err != nil {
		t.Error(err)
	}
	r.Release()
	r = mustReserve(t, b, alice, 10*mib)
	c, err := r.Charge(slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Grow(80 * mib); err != nil {
		t.Errorf("the only call to an extension: %v", err)
	}
	c.End(false)
	r.Release()
	wantUsed(t, b, 0)
}

// What a call to an extension parks counts for the extension's share, not twice for the budget, and a call beyond it is
// refused at once. Another extension has its own share.
func TestExtensionsHaveShares(t *testing.T) {
	b := New(total)
	r := mustReserve(t, b, alice, 20*mib)
	first, err := r.Charge(slow)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Charge(slow)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Charge(slow)
	wantOverloaded(t, err, "the extension's share")
	wantOverloaded(t, second.Grow(1), "the extension's share")
	other, err := r.Charge(quick)
	if err != nil {
		t.Fatal(err)
	}
	wantUsed(t, b, 20*mib)
	if err := other.Grow(5 * mib); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, b, 25*mib)
	other.End(true) // its answer is the caller's now
	other.End(false)
	wantUsed(t, b, 25*mib)
	first.End(false)
	second.End(true)
	if _, err := r.Charge(slow); err != nil {
		t.Errorf("after the calls have ended: %v", err)
	}
	r.Release()
	r.Release()
	if u := b.Usage(); u.Used != 0 {
		t.Errorf("%d bytes are in use", u.Used)
	}
}

// A call that has ended gets no more memory, also if it was waiting for it.
func TestGrowAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		other := mustReserve(t, b, bob, 70*mib)
		waiting, large := mustReserve(t, b, alice, 1), mustReserve(t, b, alice, mib)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := waiting.Grow(t.Context(), 40*mib); hook.KindOf(err) != hook.Canceled {
				t.Errorf("while it waited: got %v", err)
			}
		})
		synctest.Wait()
		for _, r := range []*Reservation{waiting, large} {
			r.Release()
			if err := r.Grow(t.Context(), 1); hook.KindOf(err) != hook.Canceled {
				t.Errorf("got %v", err)
			}
			r.Shrink(1)
		}
		other.Release()
		wg.Wait()
		wantUsed(t, b, 0)
	})
}

// An answer that comes after its call was given up is given back.
func TestEndAfterRelease(t *testing.T) {
	b := New(total)
	r := mustReserve(t, b, alice, mib)
	c, err := r.Charge(slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Grow(mib); err != nil {
		t.Fatal(err)
	}
	r.Release()
	c.End(true)
	wantUsed(t, b, 0)
}

// Calls wait in their order: one that needs much is not overtaken, but one whose account is full is.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		first := mustReserve(t, b, alice, 70*mib)
		second := mustReserve(t, b, bob, 5*mib)
		var mu sync.Mutex
		var served []string
		var wg sync.WaitGroup
		wait := func(name string, who Account, bytes int64) {
			wg.Go(func() {
				r, err := b.Reserve(t.Context(), who, bytes)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				r.Release()
			})
			synctest.Wait()
		}
		wait("alice, whose share is used", alice, 6*mib)
		wait("bob, who needs much", bob, 40*mib)
		wait("bob, who needs less", bob, littleHeld+1)
		if u := b.Usage(); u.Waiting != 3 || len(served) > 0 {
			t.Fatalf("%d calls wait, %v were served", u.Waiting, served)
		}
		second.Release()
		synctest.Wait()
		if len(served) > 0 {
			t.Errorf("%v overtook one that needs more", served)
		}
		first.Release()
		wg.Wait()
		if len(served) != 3 {
			t.Errorf("served: %v", served)
		}
		wantUsed(t, b, 0)
	})
}

// One that is over its share keeps no other account waiting.
func TestSharesDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		r := mustReserve(t, b, alice, 70*mib)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := b.Reserve(ctx, alice, 10*mib)
				if hook.KindOf(err) != hook.Canceled {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		other, err := b.Reserve(soon(t), bob, 5*mib)
		if err != nil {
			t.Errorf("bob waits for alice: %v", err)
		}
		cancel()
		wg.Wait()
		other.Release()
		r.Release()
		wantUsed(t, b, 0)
	})
}

// A call waits until half the time to its deadline has passed, and at most 5 s.
func TestWaitEnds(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, time.Minute: 5 * time.Second, 10 * time.Second: 5 * time.Second, 4 * time.Second: 2 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(total)
			r := mustReserve(t, b, alice, total)
			ctx := t.Context()
			if deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline)
				defer cancel()
			}
			start := time.Now()
			_, err := b.Reserve(ctx, bob, 1)
			wantOverloaded(t, err, "the gateway's memory for calls is used up")
			if took := time.Since(start); took != want {
				t.Errorf("with a deadline of %s it waited %s, want %s", deadline, took, want)
			}
			r.Release()
			wantUsed(t, b, 0)
		})
	}
}

// leaving is the context of a caller that leaves at the moment at which something arrives for which it waits.
type leaving struct {
	context.Context
	arrives func()
}

func (l leaving) Done() <-chan struct{} {
	l.arrives()
	return l.Context.Done()
}

// What comes for a caller at the moment at which it leaves goes to the next one, be it memory or a turn.
func TestCallerLeavesAsItIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := oneTurn()
		for range 100 { // it sees at random which of both came first
			ctx, leave := context.WithCancel(t.Context())
			held, next := mustReserve(t, b, alice, total), make(chan *Reservation, 1)
			got, err := b.Reserve(leaving{ctx, func() {
				go func() { next <- mustReserve(t, b, slow, total) }()
				synctest.Wait()
				held.Release()
				leave()
			}}, bob, total)
			if err == nil {
				got.Release()
			}
			memory := <-next

			ctx, leave = context.WithCancel(t.Context())
			busy, served := memory.Work(t.Context()), make(chan struct{})
			if err := busy.Step(); err != nil {
				t.Fatal(err)
			}
			work := memory.Work(leaving{ctx, func() {
				go func() {
					w := memory.Work(t.Context())
					if err := w.Step(); err != nil {
						t.Error(err)
					}
					w.End()
					close(served)
				}()
				synctest.Wait()
				busy.End()
				leave()
			}})
			if err := work.Step(); err == nil {
				work.End()
			}
			<-served
			memory.Release()
		}
		wantUsed(t, b, 0)
		wantNoTurns(t, b)
	})
}

// The queue is bounded, for each account and for all together, apart for calls that need the least.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		r := mustReserve(t, b, alice, total)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		enqueue := func(who Account, n int, bytes int64) {
			for range n {
				wg.Go(func() { _, _ = b.Reserve(ctx, who, bytes) })
			}
			synctest.Wait()
		}
		enqueue(bob, MaxWaitingShare, CallBytes+1)
		_, err := b.Reserve(ctx, bob, 1)
		wantOverloaded(t, err, "too many calls wait")
		enqueue(Caller("carol"), maxWaiting-MaxWaitingShare, CallBytes+1)
		_, err = b.Reserve(ctx, Caller("dave"), CallBytes+1)
		wantOverloaded(t, err, "too many calls wait")
		for i := range maxWaitingFirst {
			enqueue(Caller(strconv.Itoa(i)), 1, CallBytes)
		}
		_, err = b.Reserve(ctx, Caller("dave"), 1)
		wantOverloaded(t, err, "too many calls wait")
		if u := b.Usage(); u.Waiting != maxWaiting+maxWaitingFirst || u.Refused["waiting"] != 3 {
			t.Errorf("got %+v", u)
		}
		cancel()
		wg.Wait()
		if b.first != 0 {
			t.Errorf("%d calls are said to wait for their first memory", b.first)
		}
		r.Release()
		wantUsed(t, b, 0)
	})
}

// A call that has hardly any memory waits for its body, and one that has more does not.
func TestLittleMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for held, waits := range map[int64]bool{littleHeld: true, littleHeld + 1: false} {
			b := New(total)
			r, other := mustReserve(t, b, alice, held), mustReserve(t, b, bob, 70*mib)
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := r.Grow(t.Context(), 40*mib); (err == nil) != waits {
					t.Errorf("with %d bytes: got %v", held, err)
				}
			})
			synctest.Wait()
			other.Release()
			wg.Wait()
			r.Release()
			wantUsed(t, b, 0)
		}
	})
}

// Two calls that hold memory and both need more do not wait for each other.
func TestGrowingNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(total)
		r1, r2 := mustReserve(t, b, alice, 40*mib), mustReserve(t, b, bob, 40*mib)
		start := time.Now()
		if err := r1.Grow(t.Context(), 8*mib); err != nil {
			t.Error(err)
		}
		wantOverloaded(t, r2.Grow(t.Context(), 15*mib), "the gateway's memory for calls is used up")
		if time.Since(start) != 0 {
			t.Error("a call with memory waited for more")
		}
		// A call that waits does not keep those that have been admitted from growing.
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.Reserve(t.Context(), alice, 10*mib) })
		synctest.Wait()
		if err := r2.Grow(t.Context(), 2*mib); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// Whatever callers and extensions do, nothing is left when all calls have ended, and no bound is exceeded before.
func TestNothingIsLeft(t *testing.T) {
	b := New(total)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
				r, err := b.Reserve(ctx, Caller(strconv.Itoa(i%5)), rand.Int64N(20*mib))
				if err != nil {
					cancel()
					continue
				}
				if u := b.Usage(); u.Used > total || u.Used < 0 {
					t.Errorf("%d bytes are in use", u.Used)
				}
				_ = r.Grow(ctx, rand.Int64N(10*mib))
				if c, err := r.Charge(Extension(strconv.Itoa(i % 3))); err == nil {
					_ = c.Grow(rand.Int64N(10 * mib))
					c.End(rand.IntN(2) == 0)
				}
				r.Release()
				cancel()
			}
		})
	}
	wg.Wait()
	wantUsed(t, b, 0)
	if u := b.Usage(); u.Waiting != 0 {
		t.Errorf("%d calls wait", u.Waiting)
	}
}

// Without a Budget, nothing is bounded.
func TestNoBudget(t *testing.T) {
	var b *Budget
	r := mustReserve(t, b, alice, 1<<40)
	c, err := r.Charge(slow)
	if err := errors.Join(err, r.Grow(t.Context(), 1<<40), c.Grow(1<<40)); err != nil {
		t.Error(err)
	}
	c.End(true)
	r.Shrink(1 << 40)
	r.Release()
	if u := b.Usage(); u.Limit != 0 || len(u.Refused) != 4 {
		t.Errorf("got %+v", u)
	}
	if got := New(1).limit; got != leastLimit {
		t.Errorf("the least budget has %d bytes", got)
	}
}

// BenchmarkReserve is what the budget adds to a small call.
func BenchmarkReserve(b *testing.B) {
	budget := New(total)
	b.ReportAllocs()
	for b.Loop() {
		r, err := budget.Reserve(b.Context(), alice, 64<<10)
		if err != nil {
			b.Fatal(err)
		}
		c, err := r.Charge(slow)
		if err != nil {
			b.Fatal(err)
		}
		c.End(true)
		r.Release()
	}
}
