// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"sync"
	"time"

	"github.com/hookgate/hookgate/controllers/discovery"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
)

// workers reconcile every Extension in a goroutine of its own, so that one which does not answer delays no other. Their
// methods belong to one goroutine.
type workers struct {
	reconciler *discovery.Reconciler
	backoff    discovery.Backoff
	resync     time.Duration

	running sync.WaitGroup
	lanes   map[string]*lane
}

// lane is the worker that an ExtensionConfig has at present. When the ExtensionConfig changes, another takes over as
// soon as this one has ended, so that the work for one ExtensionConfig never overlaps.
type lane struct {
	extension *extensionconfig.Extension // nil if the ExtensionConfig is being removed
	cancel    context.CancelFunc
	done      chan struct{}
	tried     func() // tells, once, that the first attempt is over
}

// set starts reconciling x in place of what its name had before, and does nothing if that is the same. It calls tried
// once the first attempt is over, or the ExtensionConfig is gone.
func (w *workers) set(ctx context.Context, x *extensionconfig.Extension, tried func()) {
	before := w.lanes[x.Name]
	if before != nil && before.extension != nil && before.extension.Equal(x) {
		tried()
		return
	}
	next := &lane{extension: x, tried: sync.OnceFunc(tried)}
	if before != nil {
		pending := before.tried
		next.tried = sync.OnceFunc(func() { pending(); tried() })
	}
	w.start(ctx, x.Name, before, next, func(ctx context.Context) { w.loop(ctx, next) })
}

// remove stops reconciling the ExtensionConfig of that name and removes it from the registry.
func (w *workers) remove(ctx context.Context, name string) {
	before := w.lanes[name]
	if before == nil || before.extension == nil {
		return
	}
	next := &lane{tried: before.tried}
	w.start(ctx, name, before, next, func(context.Context) {
		w.reconciler.Remove(name)
		next.tried()
	})
}

// start runs work in the lane next once the lane before it has ended.
func (w *workers) start(ctx context.Context, name string, before, next *lane, work func(context.Context)) {
	ctx, next.cancel = context.WithCancel(ctx)
	next.done = make(chan struct{})
	w.lanes[name] = next
	if before != nil {
		before.cancel()
	}
	w.running.Go(func() {
		defer close(next.done)
		defer next.cancel()
		if before != nil {
			<-before.done
		}
		work(ctx)
	})
}

// loop reconciles until ctx is done.
func (w *workers) loop(ctx context.Context, l *lane) {
	delays := w.backoff.Delays()
	for ctx.Err() == nil {
		wait := w.resync
		if _, err := w.reconciler.Reconcile(ctx, *l.extension); err != nil {
			wait = delays.Next()
		} else {
			delays.Reset()
		}
		if ctx.Err() != nil {
			return // whoever takes over makes the attempt
		}
		l.tried()
		if l.extension.Paused {
			<-ctx.Done()
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// names returns the ExtensionConfigs that are reconciled, and forgets those whose removal is done.
func (w *workers) names() []string {
	var names []string
	for name, l := range w.lanes {
		if l.extension != nil {
			names = append(names, name)
			continue
		}
		select {
		case <-l.done:
			delete(w.lanes, name)
		default:
		}
	}
	return names
}

// stop ends all work and waits for it.
func (w *workers) stop() {
	for _, l := range w.lanes {
		l.cancel()
	}
	w.running.Wait()
}
