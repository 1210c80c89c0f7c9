// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// follower applies the objects of one kind to the registry of this replica.
type follower struct {
	kinds.Rules

	set     kinds.Set
	cache   cache.Cache
	client  client.Client // to write with
	served  *discovery.TrackingRegistry
	hooks   *catalog.Catalog
	records *lastValid // nil if none are kept
	logger  *slog.Logger

	isSynced func() bool // the cache has all of them
	missing  chan struct{}
	once     sync.Once
	// yields says that another gateway may use what this one must not: each verdict is written once for a generation, and
	// that of the other gateway stays.
	yields bool

	// The rest belongs to the goroutine of start and run of own.
	compiled map[string]compiled // by name
	items    []kinds.Object      // as applied last
}

// compiled is an object that was compiled.
type compiled struct {
	uid        types.UID
	generation int64
	// valid is what is in effect, and may be nil. If invalid is not empty, it is of an earlier generation: of validOf.
	valid   any
	validOf int64
	invalid string
	closed  *kinds.Closed // what an object closes that is invalid and has no valid version
	record  string        // the version of the record that was looked at, if any
	// checked says that the record of this generation has all of it, and unrecordable that there can be none.
	checked, unrecordable bool
	// written is the version of the object before the last write of its status: a cache that has it has not seen that yet.
	// It is empty if nothing was written of this generation.
	written string
}

func newFollower(shared *own, rules kinds.Rules, set kinds.Set) *follower {
	return &follower{
		Rules: rules, set: set, cache: shared.cache, client: shared.client, records: shared.records, logger: shared.logger,
		missing: make(chan struct{}), served: shared.served, hooks: shared.hooks,
	}
}

func (f *follower) isKind(name string) bool { return f.Name == name }

// setAbsent notes that the API server does not have the kind, so that there are no objects to wait for.
func (f *follower) setAbsent()              { f.once.Do(func() { close(f.missing) }) }
func (f *follower) absent() <-chan struct{} { return f.missing }
func (f *follower) synced() bool            { return f.isSynced() }

// follow subscribes handler to the objects.
func (f *follower) follow(ctx context.Context, handler toolscache.ResourceEventHandler) error {
	informer, err := f.cache.GetInformer(ctx, f.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.Name, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.Name, err)
	}
	f.isSynced = registration.HasSynced
	return nil
}

// apply applies the objects in the cache to the registry, and returns the names of the ExtensionConfigs whose calls
// change.
func (f *follower) apply(ctx context.Context) (changed []string) {
	f.items = nil
	if !f.isSynced() {
		return nil
	}
	list, _ := f.NewList().(client.ObjectList)
	err := f.cache.List(ctx, list)
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if item, ok := o.(kinds.Object); ok && item.GetDeletionTimestamp().IsZero() {
				f.items = append(f.items, item)
			}
			return nil
		})
	}
	if err != nil {
		if ctx.Err() == nil {
			f.logger.Error("objects cannot be listed from the cache", "kind", f.Name, "error", err)
		}
		return nil
	}
	next := make(map[string]compiled, len(f.items))
	items := make([]kinds.Item, 0, len(f.items))
	var closures []registry.Closure
	for _, o := range f.items {
		c := f.compileNext(o)
		next[o.GetName()] = c
		items = append(items, kinds.Item{
			Name: o.GetName(), Object: o, Compiled: c.valid, Mistake: c.invalid, Closed: c.closed,
		})
		if c.closed != nil && !c.closed.Nothing() {
			closures = append(closures, c.closed.Closure)
		}
	}
	f.compiled = next
	f.keep()
	changed = f.set.Use(items)
	f.served.SetClosures(f.Name, closures) // what has been corrected is in effect
	return changed
}

// compileNext compiles an object. While it is invalid, its last valid generation stays in effect: the one that is
// recorded, as in all replicas, or the one that this replica has seen if there is no record that is valid.
func (f *follower) compileNext(item kinds.Object) compiled {
	before, known := f.compiled[item.GetName()]
	known = known && before.uid == item.GetUID()
	key := recordKey{f.Name, item.GetUID()}
	same := known && before.generation == item.GetGeneration()
	if same && (before.invalid == "" || before.record == versionOf(f.records.ofMistaken(key))) {
		return before
	}
	now := compiled{uid: item.GetUID(), generation: item.GetGeneration(), validOf: item.GetGeneration()}
	if same {
		now.written = before.written
	}
	converted, errs := f.Compile(item)
	if len(errs) == 0 {
		now.valid = converted
		return now
	}
	now.invalid = problems.Join(errs).Error()
	if known {
		now.valid, now.validOf = before.valid, before.validOf
	}
	last := f.records.ofMistaken(key)
	now.record = versionOf(last)
	if last != nil && (now.valid == nil || now.validOf != last.Revision) {
		if c, ok := f.restore(item, last); ok {
			now.valid, now.validOf = c, last.Revision
		}
	}
	if now.valid != nil {
		now.invalid += "; its previous version stays in effect"
		return now
	}
	content, _ := json.Marshal(item) // what cannot be written is read as missing
	closed := f.Close(item.GetName(), content, now.invalid, f.hooks)
	now.closed = &closed
	now.invalid += "; " + closed.Effect()
	return now
}

// judge reports the verdicts on the objects, and returns them.
func (f *follower) judge() map[string]kinds.Verdict {
	verdicts := f.set.Verdicts()
	f.set.Report(verdicts, nil)
	return verdicts
}

// write writes the verdicts that have changed to the objects that were applied last. It reports whether the API server
// refused one, which has to be tried again.
func (f *follower) write(ctx context.Context, verdicts map[string]kinds.Verdict) (refused bool) {
	for _, item := range f.items {
		verdict, ok := verdicts[item.GetName()]
		known := f.compiled[item.GetName()]
		if !ok || known.written == item.GetResourceVersion() || f.yields && known.written != "" {
			continue
		}
		verdict.Message = text.Cut(verdict.Message, limits.ConditionMessageBytes)
		conditions := slices.Clone(*f.Conditions(item))
		if !meta.SetStatusCondition(&conditions, f.Condition(verdict, item.GetGeneration())) {
			continue
		}
		before, _ := item.DeepCopyObject().(client.Object)
		*f.Conditions(item) = conditions
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := f.client.Status().Patch(ctx, item, patch)
		switch {
		case err == nil:
			known.written = before.GetResourceVersion()
			f.compiled[item.GetName()] = known
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // the watch brings the current state
		case ctx.Err() != nil:
			return false // this replica no longer leads, or stops
		default:
			refused = true
			f.logger.Error("API server refused; trying again",
				"kind", f.Name, "name", item.GetName(), "error", fmt.Errorf("write status: %w", err))
		}
	}
	return refused
}
