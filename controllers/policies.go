// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/discovery"
	"github.com/hookgate/hookgate/internal/extensionconfig"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/notify"
	"github.com/hookgate/hookgate/internal/policy"
	"github.com/hookgate/hookgate/internal/problems"
	"github.com/hookgate/hookgate/internal/text"
)

// policies applies the ExtensionPolicies of the cluster to the registry of this replica. The leader also writes whether
// they are accepted. They are evaluated together, because they can be in conflict.
type policies struct {
	set       *discovery.PolicySet
	reconcile func(ctx context.Context, names []string) // called with ExtensionConfigs that are called differently now
	served    *discovery.TrackingRegistry
	compiler  *policy.Compiler
	hooks     *catalog.Catalog
	client    client.Client // to write with
	// cache is not the manager's, which has to sync before anything starts, because the kind may not be installed.
	cache      cache.Cache
	leadership *leadership
	logger     *slog.Logger
	readOnly   bool

	synced  func() bool // the cache has all of them
	changed *notify.Signal
	absent  chan struct{} // closed once the API server has said that the kind is not installed
	once    sync.Once

	// The rest belongs to the goroutine of start and run.
	compiled map[string]compiled // by name
	delays   *discovery.Delays   // of writes that the API server refused; nil after one that it took
}

// compiled is a policy that was compiled.
type compiled struct {
	uid        types.UID
	generation int64
	// valid is the policy in effect; if invalid is not empty, it is of an earlier generation. It may be nil.
	valid   *extensionconfig.Policy
	invalid string
}

// missing notes that the API server does not have the kind, so that there are no policies to wait for.
func (p *policies) missing() { p.once.Do(func() { close(p.absent) }) }

// follow subscribes p to policies, and to the ExtensionConfigs in targets as they come and go.
func (p *policies) follow(ctx context.Context, targets cache.Cache) error {
	notify := func(any) { p.changed.Notify() }
	everything := toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(any, any) { p.changed.Notify() }, DeleteFunc: notify,
	}
	informer, err := p.cache.GetInformer(ctx, &v1alpha1.ExtensionPolicy{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(everything)
	if err != nil {
		return err
	}
	p.synced = registration.HasSynced

	informer, err = targets.GetInformer(ctx, &runtimev1.ExtensionConfig{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	everything.UpdateFunc = nil // what matters of an update reaches the registry
	_, err = informer.AddEventHandler(everything)
	return err
}

// start applies the policies, so that no call is made without them, and reports whether that was before ctx was done.
// It waits for an API server that does not answer or refuses, but not for a kind that is not installed.
func (p *policies) start(ctx context.Context) bool {
	if !awaitSync(ctx, p.synced, p.absent) {
		return false
	}
	p.apply(ctx) // nothing is called yet, so that nothing need be reconciled
	return true
}

// run applies policies whenever something changes, and writes their conditions, until ctx is done.
func (p *policies) run(ctx context.Context) {
	var again <-chan time.Time
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() { // if the kind is installed late, the event of the last policy precedes the end of the sync
		toolscache.WaitForCacheSync(ctx.Done(), p.synced)
		p.changed.Notify()
	})
	p.changed.Notify()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed.C():
		case <-p.served.Changed():
		case <-again:
		}
		again = nil
		items, changed := p.apply(ctx)
		p.reconcile(ctx, changed)
		verdicts := p.set.Verdicts()
		p.set.Report(verdicts, nil)
		if term := p.leadership.term(); term != nil && !p.readOnly {
			if wait := p.write(ctx, term, items, verdicts); wait > 0 {
				again = time.After(wait)
			}
		}
	}
}

// apply applies the policies in the cache to the registry. It returns them, and the names of the ExtensionConfigs whose
// calls change.
func (p *policies) apply(ctx context.Context) (items []v1alpha1.ExtensionPolicy, changed []string) {
	if !p.synced() {
		return nil, nil
	}
	var list v1alpha1.ExtensionPolicyList
	if err := p.cache.List(ctx, &list); err != nil {
		if ctx.Err() == nil {
			p.logger.Error("ExtensionPolicies cannot be listed from the cache", "error", err)
		}
		return nil, nil
	}
	next := make(map[string]compiled, len(list.Items))
	valid := make([]extensionconfig.Policy, 0, len(list.Items))
	refused := map[string]extensionconfig.Refused{}
	for i := range list.Items {
		item := &list.Items[i]
		if !item.DeletionTimestamp.IsZero() {
			continue
		}
		c := p.compile(item)
		next[item.Name] = c
		if c.valid != nil {
			valid = append(valid, *c.valid)
		}
		if c.invalid != "" {
			target := extensionconfig.Target{ExtensionConfig: item.Spec.TargetRef.Name, Handler: item.Spec.TargetRef.Handler}
			refused[item.Name] = extensionconfig.Refused{Target: target, Message: c.invalid}
		}
	}
	p.compiled = next
	p.set.Refuse(refused)
	return list.Items, p.set.Set(valid)
}

// compile compiles a policy. While a policy is invalid, its last valid generation stays in effect.
func (p *policies) compile(item *v1alpha1.ExtensionPolicy) compiled {
	before, known := p.compiled[item.Name]
	if known && before.uid == item.UID && before.generation == item.Generation {
		return before
	}
	now := compiled{uid: item.UID, generation: item.Generation}
	converted, errs := extensionconfig.ConvertPolicy(item, p.compiler, p.hooks)
	if len(errs) == 0 {
		now.valid = &converted
		return now
	}
	now.invalid = problems.Join(errs).Error()
	if known && before.uid == item.UID && before.valid != nil {
		now.valid = before.valid
		now.invalid += "; its previous version stays in effect"
	}
	return now
}

// write writes the verdicts that have changed, and returns the time after which to try again those that the API server
// refused: zero if there are none.
func (p *policies) write(
	ctx, term context.Context, items []v1alpha1.ExtensionPolicy, verdicts map[string]extensionconfig.Verdict,
) time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	refused := false
	for i := range items {
		item := &items[i]
		verdict, ok := verdicts[item.Name]
		if !ok {
			continue
		}
		verdict.Message = text.Cut(verdict.Message, limits.ConditionMessageBytes)
		conditions := slices.Clone(item.Status.Conditions)
		if !meta.SetStatusCondition(&conditions, verdict.Condition(item.Generation)) {
			continue
		}
		before := item.DeepCopy()
		item.Status.Conditions = conditions
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := p.client.Status().Patch(ctx, item, patch)
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // the watch brings the current state
		case ctx.Err() != nil:
			return 0 // this replica no longer leads, or stops
		default:
			refused = true
			p.logger.Error("API server refused, which is tried again",
				"extensionPolicy", item.Name, "error", fmt.Errorf("write status: %w", err))
		}
	}
	if !refused {
		p.delays = nil
		return 0
	}
	if p.delays == nil {
		p.delays = discovery.DefaultBackoff().Delays()
	}
	return p.delays.Next()
}
