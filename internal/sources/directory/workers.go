// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
)

// workers reconciles every Extension in a goroutine of its own, so that one that does not answer delays no other. Its
// methods belong to one goroutine.
type workers struct {
	reconciler *discovery.Reconciler
	backoff    discovery.Backoff
	resync     time.Duration
	patience   time.Duration // how long workers that are cancelled are waited for
	state      *state        // may be nil

	running sync.WaitGroup
	current map[string]*worker
}

// worker reconciles or removes one ExtensionConfig. When the ExtensionConfig changes, another worker takes over as
// soon as this one has ended, so that the work for one ExtensionConfig never overlaps.
type worker struct {
	extension *extensionconfig.Extension // nil if the ExtensionConfig is being removed
	cancel    context.CancelFunc
	done      chan struct{}
	again     *notify.Signal // ends the wait for the next attempt
	tried     func()         // called once, after the first attempt
}

// serve registers what is known of Extensions that are new or changed, all at once and before their extensions are
// asked. It returns how many of xs are served now.
func (w *workers) serve(xs []extensionconfig.Extension) (served int) {
	var due []*extensionconfig.Extension
	var replaced []*worker // by the same index
	for i := range xs {
		x := &xs[i]
		before := w.current[x.Name]
		if before == nil ||
			before != nil && before.extension != nil && !before.extension.Equal(x) {
			due, replaced = append(due, x), append(replaced, before)
		}
	}
	var known []discovery.Known
	for i, ended := range w.end(replaced) {
		if ended { // otherwise, the worker that set starts does it
			known = append(known, discovery.Known{Extension: *due[i]})
		}
	}
	if len(known) > 0 {
		w.reconciler.ServeAll(known) // it logs what is refused of handlers that are not current
	}
	for i := range xs {
		if w.reconciler.Serves(&xs[i]) {
			served++
		}
	}
	return served
}

// set replaces the reconciled Extension of the same name with x, unless they are equal. It calls tried once handlers
// are served that were known before, after the first attempt, or when the ExtensionConfig is removed.
func (w *workers) set(ctx context.Context, x *extensionconfig.Extension, tried func()) {
	before := w.current[x.Name]
	if before != nil && before.extension != nil && before.extension.Equal(x) {
		tried()
		return
	}
	next := &worker{extension: x, again: notify.NewSignal(), tried: sync.OnceFunc(tried)}
	if before != nil {
		pending := before.tried
		next.tried = sync.OnceFunc(func() { pending(); tried() })
	} else if w.reconciler.Serves(x) {
		next.tried() // the handlers in its status are served already, however long discovery takes
	}
	w.start(ctx, x.Name, before, next, func(ctx context.Context) { w.loop(ctx, next) })
}

// removeAll stops to reconcile ExtensionConfigs that names returns, and removes them from the registry, all at once.
func (w *workers) removeAll(ctx context.Context, names []string) {
	var removed []*worker
	for _, name := range names {
		removed = append(removed, w.current[name])
	}
	var gone []string
	ended := w.end(removed)
	for i, name := range names {
		if ended[i] {
			gone = append(gone, name)
		} else {
			w.remove(ctx, name, w.current[name])
		}
	}
	if len(gone) == 0 {
		return
	}
	w.reconciler.RemoveAll(gone)
	w.state.forget(gone...)
	for _, name := range gone {
		w.current[name].tried()
		delete(w.current, name)
	}
}

// end cancels workers, of which some may be nil, and reports which of them have ended. That takes them no time, unless
// something that they call does not look at its context: then it is not waited for.
func (w *workers) end(all []*worker) []bool {
	for _, l := range all {
		if l != nil {
			l.cancel()
		}
	}
	late := time.NewTimer(w.patience)
	defer late.Stop()
	ended := make([]bool, len(all))
	expired := false
	for i, l := range all {
		if l == nil {
			ended[i] = true
			continue
		}
		if !expired {
			select {
			case <-l.done:
			case <-late.C:
				expired = true
			}
		}
		select {
		case <-l.done:
			ended[i] = true
		default:
		}
	}
	return ended
}

// remove removes an ExtensionConfig from the registry as soon as the worker before has ended.
func (w *workers) remove(ctx context.Context, name string, before *worker) {
	next := &worker{again: before.again, tried: before.tried}
	w.start(ctx, name, before, next, func(context.Context) {
		w.reconciler.Remove(name)
		w.state.forget(name)
		next.tried()
	})
}

// start runs work for next once the worker before it has ended.
func (w *workers) start(ctx context.Context, name string, before, next *worker, work func(context.Context)) {
	ctx, next.cancel = context.WithCancel(ctx)
	next.done = make(chan struct{})
	w.current[name] = next
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
func (w *workers) loop(ctx context.Context, l *worker) {
	delays := w.backoff.Delays()
	for ctx.Err() == nil {
		wait := w.resync
		_, err := w.reconciler.Reconcile(ctx, *l.extension)
		if err != nil {
			wait = delays.Next()
		} else {
			delays.Reset()
		}
		if !l.extension.Paused {
			w.state.save(w.reconciler.Applied(l.extension.Name), err == nil)
		}
		if ctx.Err() != nil {
			return // the next worker makes the attempt
		}
		l.tried()
		if l.extension.Paused {
			<-ctx.Done()
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-l.again.C():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// retry makes the next attempts for ExtensionConfigs now.
func (w *workers) retry(names []string) {
	for _, name := range names {
		if l := w.current[name]; l != nil {
			l.again.Notify()
		}
	}
}

// names returns the ExtensionConfigs that are reconciled, and forgets those that have been removed.
func (w *workers) names() []string {
	var names []string
	for name, l := range w.current {
		if l.extension != nil {
			names = append(names, name)
			continue
		}
		select {
		case <-l.done:
			delete(w.current, name)
		default:
		}
	}
	return names
}

// stop cancels all work and waits until it has ended.
func (w *workers) stop() {
	for _, l := range w.current {
		l.cancel()
	}
	w.running.Wait()
}
