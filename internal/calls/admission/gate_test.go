// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// enter admits a call in the background, and returns where its result appears.
func enter(ctx context.Context, g *Gate, l *Limits) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := g.Enter(ctx, l, "a")
		done <- err
	}()
	synctest.Wait()
	return done
}

func wantStatus(t *testing.T, g *Gate, want Status) {
	t.Helper()
	if got := g.Status(); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func wantDone(t *testing.T, done <-chan error, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	default:
		t.Fatal("the call still waits")
	}
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := &Gate{}, &Limits{MaxInFlight: 2, MaxWaiting: 2}
		for range 2 {
			if waited, err := g.Enter(t.Context(), l, "a"); waited || err != nil {
				t.Fatalf("got %t, %v below the limit", waited, err)
			}
		}
		first := enter(t.Context(), g, l)
		second := enter(t.Context(), g, l)
		wantStatus(t, g, Status{InFlight: 2, Waiting: 2})
		if _, err := g.Enter(t.Context(), l, "a"); !errors.Is(err, ErrFull) {
			t.Fatalf("got %v beyond the limit", err)
		}
		wantStatus(t, g, Status{InFlight: 2, Waiting: 2, Refused: 1})

		g.Leave(l)
		wantDone(t, first, nil)
		wantStatus(t, g, Status{InFlight: 2, Waiting: 1, Refused: 1})
		g.Leave(l)
		wantDone(t, second, nil)
		g.Leave(l)
		g.Leave(l)
		wantStatus(t, g, Status{Refused: 1})
	})
}

// leaving is the context of a caller that has left when something arrives for which it waits, in either order.
type leaving struct {
	context.Context
	arrives func()
}

func (l leaving) Done() <-chan struct{} {
	l.arrives()
	return l.Context.Done()
}

// The place of a caller that leaves just as its turn comes, or as it is dismissed, goes to the next one.
func TestCallerLeavesAsItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := &Gate{}, &Limits{MaxInFlight: 1, MaxWaiting: 2}
		gone, leave := context.WithCancel(t.Context())
		leave()
		errDown := errors.New("down")
		for i := range 200 { // it sees at random which of both came first
			if _, err := g.Enter(t.Context(), l, "a"); err != nil {
				t.Fatal(err)
			}
			var next <-chan error
			_, err := g.Enter(leaving{gone, func() {
				next = enter(t.Context(), g, l)
				if i%2 == 0 {
					g.Leave(l)
				} else {
					g.Dismiss("b", errDown)
				}
			}}, l, "b")
			if i%2 == 1 || err == nil {
				g.Leave(l)
			}
			wantDone(t, next, nil)
			wantStatus(t, g, Status{InFlight: 1})
			g.Leave(l)
			wantStatus(t, g, Status{})
		}
	})
}

// The end of its context ends the wait of a call, and makes room for another one.
func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := &Gate{}, &Limits{MaxInFlight: 1, MaxWaiting: 1}
		if _, err := g.Enter(t.Context(), l, "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits := enter(ctx, g, l)
		time.Sleep(time.Second)
		wantDone(t, waits, context.DeadlineExceeded)
		wantStatus(t, g, Status{InFlight: 1})
		next := enter(t.Context(), g, l)
		g.Leave(l)
		wantDone(t, next, nil)
	})
}

func TestNoRoomToWait(t *testing.T) {
	g, l := &Gate{}, &Limits{MaxInFlight: 1}
	if _, err := g.Enter(t.Context(), l, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enter(t.Context(), l, "a"); !errors.Is(err, ErrFull) {
		t.Fatalf("got %v", err)
	}
}

func TestDismiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := &Gate{}, &Limits{MaxInFlight: 1, MaxWaiting: 10}
		if _, err := g.Enter(t.Context(), l, "a"); err != nil {
			t.Fatal(err)
		}
		errDown := errors.New("down")
		first, second := enter(t.Context(), g, l), enter(t.Context(), g, l)
		other := make(chan error, 1)
		go func() {
			_, err := g.Enter(t.Context(), l, "b")
			other <- err
		}()
		synctest.Wait()
		g.Dismiss("a", errDown)
		wantDone(t, first, errDown)
		wantDone(t, second, errDown)
		wantStatus(t, g, Status{InFlight: 1, Waiting: 1})
		g.Dismiss("", errDown)
		wantDone(t, other, errDown)
		wantStatus(t, g, Status{InFlight: 1})
		g.Leave(l)
		wantStatus(t, g, Status{})
	})
}

// Limits that grow admit those that wait with the next call, and limits that shrink admit none until enough have left.
func TestLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, small, large := &Gate{}, &Limits{MaxInFlight: 1, MaxWaiting: 10}, &Limits{MaxInFlight: 3, MaxWaiting: 10}
		if _, err := g.Enter(t.Context(), small, "a"); err != nil {
			t.Fatal(err)
		}
		waits := enter(t.Context(), g, small)
		if waited, err := g.Enter(t.Context(), large, "a"); waited || err != nil {
			t.Fatalf("got %t, %v", waited, err)
		}
		wantDone(t, waits, nil)
		wantStatus(t, g, Status{InFlight: 3})
		waits = enter(t.Context(), g, small)
		g.Leave(small)
		g.Leave(small)
		wantStatus(t, g, Status{InFlight: 1, Waiting: 1})
		g.Leave(small)
		wantDone(t, waits, nil)
	})
}

// However calls come, end and give up, there are never more in flight than allowed, and no place is lost.
func TestConcurrency(t *testing.T) {
	g, l := &Gate{}, &Limits{MaxInFlight: 3, MaxWaiting: 4}
	var inFlight atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((n*7+i)%5)*10*time.Microsecond)
				if _, err := g.Enter(ctx, l, "a"); err == nil {
					if inFlight.Add(1) > 3 {
						t.Error("too many calls are in flight")
					}
					inFlight.Add(-1)
					g.Leave(l)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if s := g.Status(); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("left: %+v", s)
	}
}
