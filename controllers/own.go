// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/sources/discovery"
)

// own applies the objects of Hookgate's own kinds to the registry of this replica. The leader also writes a condition
// of each: whether it is in effect.
type own struct {
	kinds     []followed // in the order in which they are applied
	hooks     *catalog.Catalog
	reconcile func(ctx context.Context, names []string)
	records   *lastValid // of the kinds; nil if none are kept
	served    *discovery.TrackingRegistry
	client    client.Client // to write with
	// cache is not the manager's, which has to sync before anything starts, because a kind may not be installed.
	cache      cache.Cache
	leadership *leadership
	logger     *slog.Logger
	readOnly   bool
	changed    *notify.Signal

	standings map[string]standing // the last ones; they belong to the goroutine of run
}

// followed is a kind of Hookgate's own.
type followed interface {
	isKind(name string) bool
	follow(ctx context.Context, handler toolscache.ResourceEventHandler) error
	synced() bool
	setAbsent()
	absent() <-chan struct{}
	apply(ctx context.Context) (changed []string)
	judge() map[string]kinds.Verdict
	write(ctx context.Context, verdicts map[string]kinds.Verdict) (refused bool)
}

// setAbsent notes that the API server does not have a kind.
func (o *own) setAbsent(kind string) {
	for _, f := range o.kinds {
		if f.isKind(kind) {
			f.setAbsent()
		}
	}
}

// follow subscribes o to its kinds, and to the ExtensionConfigs in targets as they come and go.
func (o *own) follow(ctx context.Context, targets cache.Cache) error {
	notify := func(any) { o.changed.Notify() }
	everything := toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(any, any) { o.changed.Notify() }, DeleteFunc: notify,
	}
	for _, f := range o.kinds {
		if err := f.follow(ctx, everything); err != nil {
			return err
		}
	}
	informer, err := targets.GetInformer(ctx, &runtimev1.ExtensionConfig{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	everything.UpdateFunc = nil // what matters of an update reaches the registry
	_, err = informer.AddEventHandler(everything)
	return err
}

// start applies all objects, so that no call is made without them, and reports whether that was before ctx was done.
// It waits for an API server that does not answer or refuses, but not for a kind that is not installed.
func (o *own) start(ctx context.Context) bool {
	for _, f := range o.kinds {
		if !awaitSync(ctx, f.synced, f.absent()) {
			return false
		}
		f.apply(ctx) // nothing is called yet, so that nothing need be reconciled
	}
	return true
}

// run applies objects whenever something changes, and writes their conditions, until ctx is done.
func (o *own) run(ctx context.Context) {
	var again <-chan time.Time
	var delays *discovery.Delays // of writes that the API server refused; nil after it took all
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for _, f := range o.kinds {
		waiting.Go(func() { // if the kind is installed late, the event of the last object precedes the end of the sync
			toolscache.WaitForCacheSync(ctx.Done(), f.synced)
			o.changed.Notify()
		})
	}
	o.changed.Notify()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changed.C():
		case <-o.served.Changed():
		case <-again:
		}
		again = nil
		for _, f := range o.kinds {
			o.reconcile(ctx, f.apply(ctx))
		}
		before := o.standings
		if o.standings = standings(o.served.Snapshot(), o.hooks); o.leadership.term() != nil {
			o.reconcile(ctx, differing(before, o.standings))
		}
		if !o.judge(ctx) {
			delays = nil
			continue
		}
		if delays == nil {
			delays = discovery.DefaultBackoff().Delays()
		}
		again = time.After(delays.Next())
	}
}

// judge reports the verdicts on all objects, and writes them if this replica leads. It reports whether the API server
// refused one.
func (o *own) judge(ctx context.Context) (refused bool) {
	term := o.leadership.term()
	if term != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(term, cancel)()
	}
	for _, f := range o.kinds {
		verdicts := f.judge()
		if term != nil && !o.readOnly && f.write(ctx, verdicts) {
			refused = true
		}
	}
	return refused
}
