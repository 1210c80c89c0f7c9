// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// placeAttempts is how often a replica writes places that others write at the same time.
const placeAttempts = 20

// rulePlaces keeps the places of HookRules in their status, under the lock of the resource version, before it gives
// one out. So neither a restart nor another replica loses or doubles one.
type rulePlaces struct {
	params   *ruleParams
	logger   *slog.Logger
	readOnly bool
	lifts    *pendingEvents[lift, string]        // holds that an annotation has lifted, with what the rules say
	seen     atomic.Pointer[map[string]seenRule] // by name; may be behind the API server

	// Set before the registry is filled.
	live   client.Reader
	client client.Client

	mu    sync.Mutex
	locks map[string]chan struct{} // by rule, so that calls of one replica are in no conflict with each other
}

var _ hookrule.Places = (*rulePlaces)(nil)

// seenRule is what the cache has shown of a rule. It does not change.
type seenRule struct {
	places []v1alpha1.HookRulePlace
	// ended means that the rule in effect has no concurrency, so that nothing needs its places.
	ended bool
}

func newRulePlaces(params *ruleParams, readOnly bool, logger *slog.Logger) *rulePlaces {
	return &rulePlaces{
		params: params, readOnly: readOnly, logger: logger,
		lifts: newPendingEvents[lift, string](limits.LiftedHolds), locks: map[string]chan struct{}{},
	}
}

// Take implements hookrule.Places.
func (p *rulePlaces) Take(
	ctx context.Context, rule string, want v1alpha1.HookRulePlace, limit int, beyond bool,
) (hookrule.Allocation, error) {
	// Clusters that wait ask again and again: if none was free when the rule was last seen, they wait on.
	if known, ok := p.lastSeen()[rule]; ok {
		if _, is := hookrule.Allocate(known.places, want, limit, beyond); !is.OK {
			return is, nil
		}
	}
	// Where Clusters cannot be seen to end, places would stay taken.
	if problem := p.params.problem([]hookrule.Reference{hookrule.ClusterReference()}); problem != "" {
		return hookrule.Allocation{}, hook.Errorf(hook.NotReady, "HookRule %q gives out no places: %s", rule, problem)
	}
	var is hookrule.Allocation
	err := p.update(ctx, rule, func(places []v1alpha1.HookRulePlace) (next []v1alpha1.HookRulePlace) {
		next, is = hookrule.Allocate(places, want, limit, beyond)
		return next
	})
	if err != nil {
		return hookrule.Allocation{}, err
	}
	return is, nil
}

// Free implements hookrule.Places.
func (p *rulePlaces) Free(ctx context.Context, rule string, cluster types.NamespacedName) error {
	return p.update(ctx, rule, func(places []v1alpha1.HookRulePlace) []v1alpha1.HookRulePlace {
		return hookrule.Free(places, cluster)
	})
}

// update writes what change makes of the places of a rule, as they are now, if that is something else.
func (p *rulePlaces) update(
	ctx context.Context, rule string, change func([]v1alpha1.HookRulePlace) []v1alpha1.HookRulePlace,
) error {
	fails := func(err error) error {
		return hook.Errorf(hook.NotReady, "the places of HookRule %q cannot be read or written: try again", rule).
			WithCause(err)
	}
	unlock, err := p.lock(ctx, rule)
	if err != nil {
		return fails(err)
	}
	defer unlock()
	for range placeAttempts {
		list := &v1alpha1.HookRuleList{} // a list, because the gateway has no right to get rules
		if err = p.live.List(ctx, list, client.MatchingFields{"metadata.name": rule}); err != nil {
			return fails(err)
		}
		if len(list.Items) != 1 {
			return fails(errors.New("there is no such HookRule any more"))
		}
		now := &list.Items[0]
		next := change(now.Status.Places)
		if slices.Equal(next, now.Status.Places) {
			return nil
		}
		if p.readOnly {
			return hook.Errorf(hook.NotReady, "HookRule %q has concurrency, and this gateway writes nothing (--read-only)", rule)
		}
		before := now.DeepCopy()
		now.Status.Places = next
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err = p.client.Status().Patch(ctx, now, patch); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fails(err)
	}
	return nil
}

// lock waits until no other call of this replica writes the places of a rule.
func (p *rulePlaces) lock(ctx context.Context, rule string) (unlock func(), err error) {
	p.mu.Lock()
	lock := p.locks[rule]
	if lock == nil {
		lock = make(chan struct{}, 1)
		p.locks[rule] = lock
	}
	p.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// see takes note of the rules as the cache has them. inEffect may have earlier generations of them, and lacks those
// that have never been valid.
func (p *rulePlaces) see(rules []*v1alpha1.HookRule, inEffect []registry.Registration) {
	seen := make(map[string]seenRule, len(rules))
	for _, rule := range rules {
		seen[rule.Name] = seenRule{places: slices.Clone(rule.Status.Places)} // writing the condition changes the rule
	}
	for i := range inEffect {
		name := inEffect[i].Name
		rule, _ := inEffect[i].InProcess.(*hookrule.Rule)
		seen[name] = seenRule{places: seen[name].places, ended: rule != nil && !rule.TakesPlaces()}
	}
	p.seen.Store(&seen)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.locks, func(name string, lock chan struct{}) bool {
		_, ok := seen[name]
		return !ok && len(lock) == 0
	})
}

// lastSeen returns the rules that see was called with, by name.
func (p *rulePlaces) lastSeen() map[string]seenRule {
	if seen := p.seen.Load(); seen != nil {
		return *seen
	}
	return nil
}

// shownIn returns rules with their places, as far as there is room for them.
func (p *rulePlaces) shownIn(rules []status.InProcess) []status.InProcess {
	seen, room := p.lastSeen(), limits.HeldClusters
	shown := slices.Clone(rules)
	for i := range shown {
		places := seen[shown[i].Name].places
		n := min(len(places), room)
		shown[i].MissedPlaces = len(places) - n
		room -= n
		for _, place := range places[:n] {
			shown[i].Places = append(shown[i].Places, status.Place{
				Namespace: place.Namespace, Cluster: place.Name, Per: place.Per, Since: place.Since.Time,
			})
		}
	}
	return shown
}

// run frees the places that no call frees, while this replica leads, until ctx is done.
func (p *rulePlaces) run(ctx context.Context, leads func() bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(limits.PlacesInterval):
		}
		if leads() && !p.readOnly {
			p.sweep(ctx)
		}
	}
}

// sweep frees the places whose Clusters are gone or are to have another version, and those of rules without
// concurrency.
func (p *rulePlaces) sweep(ctx context.Context) {
	for name, rule := range p.lastSeen() {
		over := rule.places
		if !rule.ended {
			over = slices.DeleteFunc(slices.Clone(over), func(place v1alpha1.HookRulePlace) bool {
				return !p.isOver(ctx, &place)
			})
		}
		if len(over) == 0 {
			continue
		}
		err := p.update(ctx, name, func(places []v1alpha1.HookRulePlace) []v1alpha1.HookRulePlace {
			return slices.DeleteFunc(slices.Clone(places), func(place v1alpha1.HookRulePlace) bool {
				return slices.Contains(over, place) // as it was when its Cluster was looked at
			})
		})
		if err != nil && ctx.Err() == nil {
			p.logger.Warn("places of a HookRule that are no longer needed stay taken, which is tried again",
				"hookRule", name, "error", errors.Unwrap(err))
		}
	}
}

// isOver reports whether a place is no longer needed. What the cache shows is confirmed by the API server: the place
// may be newer than the cache.
func (p *rulePlaces) isOver(ctx context.Context, place *v1alpha1.HookRulePlace) bool {
	cluster := types.NamespacedName{Namespace: place.Namespace, Name: place.Name}
	if now, known := p.params.lookUp(hookrule.ClusterReference(), cluster); !known || !hookrule.Over(place, now) {
		return false
	}
	o, err := p.params.get(ctx, hookrule.ClusterReference(), cluster)
	if err != nil {
		return false
	}
	if o == nil {
		return true
	}
	_, now, err := compact(o)
	return err == nil && hookrule.Over(place, now)
}
