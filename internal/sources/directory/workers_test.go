// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
)

func newWorkers(b *discoverytest.Fixture, backoff discovery.Backoff, resync time.Duration) *workers {
	return &workers{reconciler: b.Reconciler, backoff: backoff, resync: resync, patience: endPatience, current: map[string]*worker{}}
}

func set(ctx context.Context, w *workers, x extensionconfig.Extension) { w.set(ctx, &x, func() {}) }

func TestWorkersBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		w := newWorkers(b, discovery.Backoff{BaseDelay: time.Second, Multiplier: 2, MaxDelay: 5 * time.Second}, time.Minute)
		set(t.Context(), w, discoverytest.Extension("acme", urlA))
		time.Sleep(18 * time.Second)
		synctest.Wait()
		var waits []time.Duration
		calls := b.Extensions.Calls(urlA)
		for i := 1; i < len(calls); i++ {
			waits = append(waits, calls[i].Sub(calls[i-1]))
		}
		if got, want := fmt.Sprint(waits), "[1s 2s 4s 5s 5s]"; got != want {
			t.Errorf("waits are %s, want %s", got, want)
		}

		b.Extensions.Serve(urlA, "v") // down at the start, picked up when it comes
		time.Sleep(5 * time.Second)
		synctest.Wait()
		b.Serves(t, "the extension came", "v.acme "+urlA)

		b.Extensions.Down(urlA)
		time.Sleep(time.Minute - time.Second/2) // half a second after the first failure
		synctest.Wait()
		calls = b.Extensions.Calls(urlA)
		time.Sleep(time.Second)
		synctest.Wait()
		if after := b.Extensions.Calls(urlA); len(after) != len(calls)+1 {
			t.Errorf("%d attempts in the first second after a success, want 1: a success starts over", len(after)-len(calls))
		}
		b.Serves(t, "it keeps its handlers", "v.acme "+urlA)
		w.stop()
	})
}

// TestWorkersRepeatDiscovery: an extension upgraded behind the same URL is noticed.
func TestWorkersRepeatDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		b.Extensions.Serve(urlA, "v1")
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		set(t.Context(), w, discoverytest.Extension("acme", urlA))
		synctest.Wait()
		b.Serves(t, "before the upgrade", "v1.acme "+urlA)
		b.Extensions.Serve(urlA, "v1", "v2")
		time.Sleep(discovery.DefaultResync)
		synctest.Wait()
		b.Serves(t, "after the upgrade", "v1.acme "+urlA, "v2.acme "+urlA)
		if got := b.Logs.Lines("extension changed", "handlers=2"); len(got) != 1 {
			t.Errorf("the change is logged, got %q", got)
		}
		w.stop()
	})
}

// TestWorkersWaitForNoOtherExtension: each has its own worker.
func TestWorkersWaitForNoOtherExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		for i := range 5 {
			url := fmt.Sprintf("https://hangs-%d.example.com", i)
			b.Extensions.Hang(url)
			set(t.Context(), w, discoverytest.Extension(fmt.Sprintf("bad-%d", i), url))
		}
		b.Extensions.Serve(urlA, "v")
		set(t.Context(), w, discoverytest.Extension("good", urlA))
		synctest.Wait() // no time passes
		b.Serves(t, "the good one is there at once", "v.good "+urlA)
		w.stop()
	})
}

func TestWorkersReplaceAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		b.Extensions.Hang(urlA)
		b.Extensions.Serve(urlB, "v")
		began := time.Now()
		tried := false
		x := discoverytest.Extension("acme", urlA)
		w.set(t.Context(), &x, func() { tried = true })
		synctest.Wait()
		set(t.Context(), w, discoverytest.Extension("acme", urlB))
		synctest.Wait()
		b.Serves(t, "an update does not wait for the attempt that hangs", "v.acme "+urlB)
		if !tried {
			t.Error("the update's attempt counts as an attempt of the replaced registration")
		}

		same := len(b.Extensions.Calls(urlB))
		set(t.Context(), w, discoverytest.Extension("acme", urlB))
		synctest.Wait()
		if got := len(b.Extensions.Calls(urlB)); got != same {
			t.Error("what has not changed is not discovered again")
		}

		b.Extensions.Hang(urlB)
		time.Sleep(discovery.DefaultResync)
		synctest.Wait() // in the middle of an attempt
		w.removeAll(t.Context(), w.names())
		synctest.Wait()
		b.Serves(t, "a removal does not wait, and nothing comes after it")
		set(t.Context(), w, discoverytest.Extension("acme", urlA, "known"))
		synctest.Wait()
		b.Serves(t, "it may come back", "known.acme "+urlA)
		if took := time.Since(began); took != discovery.DefaultResync {
			t.Errorf("took %v more than the resync", took-discovery.DefaultResync)
		}
		w.stop()
	})
}

func TestWorkersNeverOverlapForOneExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		answer := make(chan struct{})
		b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
			<-answer // whatever happens to the context
			return extension.Discovered{Handlers: discoverytest.Handlers("late")}, nil
		})
		b.Extensions.Serve(urlB, "v")
		set(t.Context(), w, discoverytest.Extension("acme", urlA))
		synctest.Wait()
		set(t.Context(), w, discoverytest.Extension("acme", urlB))
		synctest.Wait()
		b.Serves(t, "the update waits for the attempt to end")
		close(answer)
		synctest.Wait()
		b.Serves(t, "and has the last word", "v.acme "+urlB)
		w.stop()
	})
}

// An attempt that does not look at its context delays its own ExtensionConfig alone.
func TestWorkersDoNotWaitForAnAttemptThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		answer := make(chan struct{})
		b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
			<-answer
			return extension.Discovered{}, nil
		})
		b.Extensions.Hang(urlB)
		set(t.Context(), w, discoverytest.Extension("a", urlA, "v"))
		set(t.Context(), w, discoverytest.Extension("b", urlB, "v"))
		set(t.Context(), w, discoverytest.Extension("c", urlA, "v"))
		synctest.Wait()
		began := time.Now()
		xs := []extensionconfig.Extension{
			discoverytest.Extension("a", urlB, "w"), discoverytest.Extension("b", urlA, "w"),
		}
		for i := range xs { // as in a manifest with a status
			xs[i].LastClient = extensionconfig.LastClientOf(&xs[i].Registration)
		}
		w.serve(xs)
		b.Serves(t, "the change of b", "v.a "+urlA, "v.c "+urlA, "w.b "+urlA)
		for i := range xs {
			w.set(t.Context(), &xs[i], func() {})
		}
		w.removeAll(t.Context(), []string{"c"})
		if took := time.Since(began); took != 2*endPatience {
			t.Errorf("waited %s, want %s for the change and as long for the removal", took, endPatience)
		}
		close(answer)
		synctest.Wait()
		b.Serves(t, "all changes", "w.a "+urlB)
		if names := w.names(); len(names) != 2 || len(w.current) != 2 {
			t.Errorf("%v are reconciled, and there are %d workers", names, len(w.current))
		}
		w.stop()
	})
}

func TestWorkersStopIsNoFailureOfAnExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		b.Extensions.Set(urlA, func(ctx context.Context) (extension.Discovered, error) {
			<-ctx.Done()
			return extension.Discovered{}, ctx.Err()
		})
		w := newWorkers(b, discovery.DefaultBackoff(), discovery.DefaultResync)
		set(t.Context(), w, discoverytest.Extension("acme", urlA))
		synctest.Wait()
		w.stop()
		if got := b.Logs.Lines("level=ERROR"); len(got) > 0 || len(b.Observer.Outcomes()) > 0 {
			t.Errorf("got %q and %q", got, b.Observer.Outcomes())
		}
	})
}
