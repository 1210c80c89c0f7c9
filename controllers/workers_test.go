// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/extension"
)

func (b *bench) workers(backoff Backoff, resync time.Duration) *workers {
	return &workers{reconciler: b.reconciler, backoff: backoff, resync: resync, lanes: map[string]*lane{}}
}

func set(ctx context.Context, w *workers, x Extension) { w.set(ctx, &x, func() {}) }

func TestTrap13WorkersBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := b.workers(Backoff{BaseDelay: time.Second, Multiplier: 2, MaxDelay: 5 * time.Second}, time.Minute)
		set(t.Context(), w, ext("acme", urlA))
		time.Sleep(18 * time.Second)
		synctest.Wait()
		var waits []time.Duration
		calls := b.extensions.callsOf(urlA)
		for i := 1; i < len(calls); i++ {
			waits = append(waits, calls[i].Sub(calls[i-1]))
		}
		if got, want := fmt.Sprint(waits), "[1s 2s 4s 5s 5s]"; got != want {
			t.Errorf("waits are %s, want %s", got, want)
		}

		b.extensions.serve(urlA, "v") // down at the start, picked up when it comes
		time.Sleep(5 * time.Second)
		synctest.Wait()
		b.served(t, "the extension came", "v.acme "+urlA)

		b.extensions.down(urlA)
		time.Sleep(time.Minute - time.Second/2) // half a second after the first failure
		synctest.Wait()
		calls = b.extensions.callsOf(urlA)
		time.Sleep(time.Second)
		synctest.Wait()
		if after := b.extensions.callsOf(urlA); len(after) != len(calls)+1 {
			t.Errorf("%d attempts in the first second after a success, want 1: a success starts over", len(after)-len(calls))
		}
		b.served(t, "it keeps its handlers", "v.acme "+urlA)
		w.stop()
	})
}

func TestDefaultBackoffStaysWithinBounds(t *testing.T) {
	d := DefaultBackoff().Delays()
	if first := d.Next(); first < 400*time.Millisecond || first > 600*time.Millisecond {
		t.Errorf("first wait is %v, want 0.5 s give or take a fifth", first)
	}
	var last time.Duration
	for range 100 {
		if last = d.Next(); last <= 0 || last > time.Minute {
			t.Fatalf("wait is %v, want at most 1 min and no end", last)
		}
	}
	if last < 48*time.Second {
		t.Errorf("wait is %v after 100 failures, want about 1 min", last)
	}
}

func TestBackoffCheck(t *testing.T) {
	for name, wrong := range map[string]Backoff{
		"BaseDelay":  {Multiplier: 1, MaxDelay: 1},
		"MaxDelay":   {BaseDelay: 2, Multiplier: 1, MaxDelay: 1},
		"Multiplier": {BaseDelay: 1, MaxDelay: 1, Multiplier: 0.5},
		"Jitter":     {BaseDelay: 1, MaxDelay: 1, Multiplier: 1, Jitter: 1},
	} {
		if wrong.Check() == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// TestTrap11DiscoveryIsRepeated: an extension that is upgraded behind the same URL is noticed.
func TestTrap11DiscoveryIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.extensions.serve(urlA, "v1")
		w := b.workers(DefaultBackoff(), DefaultResync)
		set(t.Context(), w, ext("acme", urlA))
		synctest.Wait()
		b.served(t, "before the upgrade", "v1.acme "+urlA)
		b.extensions.serve(urlA, "v1", "v2")
		time.Sleep(DefaultResync)
		synctest.Wait()
		b.served(t, "after the upgrade", "v1.acme "+urlA, "v2.acme "+urlA)
		if got := b.logs.lines("extension changed", "handlers=2"); len(got) != 1 {
			t.Errorf("the change is logged, got %q", got)
		}
		w.stop()
	})
}

// TestTrap10OneUnreachableExtensionDelaysNoOther: each has its own worker.
func TestTrap10OneUnreachableExtensionDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := b.workers(DefaultBackoff(), DefaultResync)
		for i := range 5 {
			url := fmt.Sprintf("https://hangs-%d.example.com", i)
			b.extensions.hang(url)
			set(t.Context(), w, ext(fmt.Sprintf("bad-%d", i), url))
		}
		b.extensions.serve(urlA, "v")
		set(t.Context(), w, ext("good", urlA))
		synctest.Wait() // no time passes
		b.served(t, "the good one is there at once", "v.good "+urlA)
		w.stop()
	})
}

func TestWorkersReplaceAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := b.workers(DefaultBackoff(), DefaultResync)
		b.extensions.hang(urlA)
		b.extensions.serve(urlB, "v")
		began := time.Now()
		tried := false
		x := ext("acme", urlA)
		w.set(t.Context(), &x, func() { tried = true })
		synctest.Wait()
		set(t.Context(), w, ext("acme", urlB))
		synctest.Wait()
		b.served(t, "an update does not wait for the attempt that hangs", "v.acme "+urlB)
		if !tried {
			t.Error("the attempt of the update counts as that of what it replaces")
		}

		same := len(b.extensions.callsOf(urlB))
		set(t.Context(), w, ext("acme", urlB))
		synctest.Wait()
		if got := len(b.extensions.callsOf(urlB)); got != same {
			t.Error("what has not changed is not discovered again")
		}

		b.extensions.hang(urlB)
		time.Sleep(DefaultResync)
		synctest.Wait() // in the middle of an attempt
		w.remove(t.Context(), "acme")
		synctest.Wait()
		b.served(t, "a removal does not wait, and nothing comes after it")
		set(t.Context(), w, ext("acme", urlA, "known"))
		synctest.Wait()
		b.served(t, "it may come back", "known.acme "+urlA)
		if took := time.Since(began); took != DefaultResync {
			t.Errorf("took %v more than the resync", took-DefaultResync)
		}
		w.stop()
	})
}

func TestWorkersNeverOverlapForOneExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := b.workers(DefaultBackoff(), DefaultResync)
		answer := make(chan struct{})
		b.extensions.set(urlA, func(context.Context) (extension.Discovered, error) {
			<-answer // whatever happens to the context
			return extension.Discovered{Handlers: handlers("late")}, nil
		})
		b.extensions.serve(urlB, "v")
		set(t.Context(), w, ext("acme", urlA))
		synctest.Wait()
		set(t.Context(), w, ext("acme", urlB))
		synctest.Wait()
		b.served(t, "the update waits for the attempt to end")
		close(answer)
		synctest.Wait()
		b.served(t, "and has the last word", "v.acme "+urlB)
		w.stop()
	})
}

func TestWorkersStopIsNoFailureOfAnExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.extensions.set(urlA, func(ctx context.Context) (extension.Discovered, error) {
			<-ctx.Done()
			return extension.Discovered{}, ctx.Err()
		})
		w := b.workers(DefaultBackoff(), DefaultResync)
		set(t.Context(), w, ext("acme", urlA))
		synctest.Wait()
		w.stop()
		if got := b.logs.lines("level=ERROR"); len(got) > 0 || len(b.seen.outcomes) > 0 {
			t.Errorf("got %q and %q", got, b.seen.outcomes)
		}
	})
}
