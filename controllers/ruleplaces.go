// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// placeAttempts is how often a replica tries to write a place that others write at the same time.
const placeAttempts = 20

// rulePlaces keeps the places of HookRules in ClusterRecords, before it gives one out, so that neither a restart nor a
// move loses one.
//
// No replica gives out the last place twice. A Cluster first has a record without since, and gets its place by an
// update of that, for which a list that was made after it counts the places and the records without since that are
// older. Of two Clusters for one place, one thus sees the other. The order is that of resource versions.
type rulePlaces struct {
	params   *ruleParams
	logger   *slog.Logger
	readOnly bool
	lifts    *pendingEvents[lift, string] // holds that were lifted, with what rules and handlers say
	rules    atomic.Pointer[map[string]seenRule]

	// Set before the registry is filled.
	live   client.Reader
	client client.Client
	// cached returns the records of places of a rule, of all rules if it is empty; they may be behind the API server, and
	// do not change. It reports whether they are known.
	cached func(ctx context.Context, rule string) ([]v1alpha1.ClusterRecord, bool)

	mu    sync.Mutex
	locks map[string]chan struct{} // by rule, so that calls of one replica are in no conflict with each other
}

var _ hookrule.Places = (*rulePlaces)(nil)

// seenRule is a rule that there is.
type seenRule struct {
	// ended means that the rule in effect has no concurrency, so that nothing needs its places.
	ended bool
}

func newRulePlaces(params *ruleParams, readOnly bool, logger *slog.Logger) *rulePlaces {
	return &rulePlaces{
		params: params, readOnly: readOnly, logger: logger,
		lifts: newPendingEvents[lift, string](limits.LiftedHolds), locks: map[string]chan struct{}{},
	}
}

// use makes records the source of what is cached.
func (p *rulePlaces) use(records *records) {
	p.cached = func(ctx context.Context, rule string) ([]v1alpha1.ClusterRecord, bool) {
		if !records.synced() {
			return nil, false
		}
		all, err := placesIn(ctx, records.cache, rule, client.UnsafeDisableDeepCopy)
		return all, err == nil
	}
}

// ruleLabel of a ClusterRecord is the name of the HookRule that its place is of.
const ruleLabel = "hookgate.dev/hook-rule"

// placesIn lists the records of places of a rule, or of all rules if it is empty.
func placesIn(
	ctx context.Context, from client.Reader, rule string, options ...client.ListOption,
) ([]v1alpha1.ClusterRecord, error) {
	options = append(options, client.HasLabels{ruleLabel})
	if rule != "" {
		options = append(options, client.MatchingLabels{ruleLabel: rule})
	}
	list := &v1alpha1.ClusterRecordList{}
	err := from.List(ctx, list, options...)
	return slices.DeleteFunc(list.Items, func(r v1alpha1.ClusterRecord) bool {
		return r.Spec.Place == nil || !r.DeletionTimestamp.IsZero()
	}), err
}

// placeOf returns the place of a record.
func placeOf(r *v1alpha1.ClusterRecord) hookrule.Place {
	return hookrule.Place{
		Namespace: r.Namespace, Name: r.Spec.ClusterName, UID: string(ownerCluster(r)), Per: r.Spec.Place.Per,
		TopologyVersion: r.Spec.Place.TopologyVersion, Since: r.Spec.Place.Since,
	}
}

// placesOf returns the places of records that are meant.
func placesOf(records []v1alpha1.ClusterRecord, isMeant func(*v1alpha1.ClusterRecord) bool) []hookrule.Place {
	places := make([]hookrule.Place, 0, len(records))
	for i := range records {
		if isMeant(&records[i]) {
			places = append(places, placeOf(&records[i]))
		}
	}
	return places
}

func isAny(*v1alpha1.ClusterRecord) bool { return true }

// isGiven reports whether a place has been given out.
func isGiven(r *v1alpha1.ClusterRecord) bool { return !r.Spec.Place.Since.IsZero() }

// Take implements hookrule.Places.
func (p *rulePlaces) Take(
	ctx context.Context, rule string, want hookrule.Place, limit int, beyond bool,
) (hookrule.Allocation, error) {
	// Clusters that wait ask again and again: if none was free when the places were last seen, they wait on.
	if known, ok := p.cached(ctx, rule); ok {
		if _, is := hookrule.Allocate(placesOf(known, isAny), want, limit, beyond); !is.OK {
			return is, nil
		}
	}
	// Where Clusters cannot be seen to end, places would stay taken.
	if problem := p.params.problem([]hookrule.Reference{hookrule.ClusterReference()}); problem != "" {
		return hookrule.Allocation{}, hook.Errorf(hook.NotReady, "HookRule %q gives out no places: %s", rule, problem)
	}
	unlock, err := p.lock(ctx, rule)
	if err != nil {
		return hookrule.Allocation{}, placesFail(rule, err)
	}
	defer unlock()
	for range placeAttempts {
		var is hookrule.Allocation
		var done bool
		is, done, err = p.take(ctx, rule, want, limit, beyond)
		switch {
		case err == nil && done:
			return is, nil
		case err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err):
			return hookrule.Allocation{}, placesFail(rule, err)
		}
	}
	return hookrule.Allocation{}, placesFail(rule, cmp.Or(err, errors.New("others write them all the time")))
}

// placesFail returns the error of a call, which is err if that says itself what is wrong.
func placesFail(rule string, err error) error {
	if _, says := errors.AsType[*hook.Error](err); says {
		return err
	}
	return hook.Errorf(hook.NotReady, "the places of HookRule %q cannot be read or written: try again", rule).
		WithCause(err)
}

// take does one step towards a place by what the API server has now, and reports whether it is the last one.
func (p *rulePlaces) take(
	ctx context.Context, rule string, want hookrule.Place, limit int, beyond bool,
) (is hookrule.Allocation, done bool, err error) {
	records, err := placesIn(ctx, p.live, rule)
	if err != nil {
		return is, false, err
	}
	i := slices.IndexFunc(records, func(r v1alpha1.ClusterRecord) bool {
		return r.Namespace == want.Namespace && r.Spec.ClusterName == want.Name
	})
	if i < 0 {
		if _, is = hookrule.Allocate(placesOf(records, isAny), want, limit, beyond); !is.OK {
			return is, true, nil
		}
		return is, false, p.announce(ctx, rule, want)
	}
	own := &records[i]
	next := own.DeepCopy()
	next.Spec.Place.TopologyVersion = want.TopologyVersion
	switch uid := string(ownerCluster(own)); {
	case uid != "" && want.UID != "" && uid != want.UID: // of a Cluster that is gone
		return is, false, p.remove(ctx, own)
	case isGiven(own) && own.Spec.Place.TopologyVersion == want.TopologyVersion:
		return hookrule.Allocation{OK: true}, true, nil
	case isGiven(own): // it goes on with another upgrade
		is.OK = true
	default:
		rivals := placesOf(records, func(r *v1alpha1.ClusterRecord) bool {
			return r.UID != own.UID && (isGiven(r) || !isBefore(own, r))
		})
		if _, is = hookrule.Allocate(rivals, want, limit, beyond); !is.OK {
			return is, true, p.remove(ctx, own)
		}
		next.Spec.Place.Per, next.Spec.Place.Since = want.Per, want.Since
	}
	if p.readOnly {
		return is, false, writesNothing(rule)
	}
	return is, true, p.client.Update(ctx, next)
}

// isBefore reports whether a record was written before another one.
func isBefore(a, b *v1alpha1.ClusterRecord) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

func writesNothing(rule string) error {
	return hook.Errorf(hook.NotReady, "HookRule %q has concurrency, and this gateway writes nothing (--read-only)", rule)
}

// announce makes the record of a place that is not given out yet.
func (p *rulePlaces) announce(ctx context.Context, rule string, want hookrule.Place) error {
	if p.readOnly {
		return writesNothing(rule)
	}
	cluster, err := p.params.get(ctx, hookrule.ClusterReference(),
		types.NamespacedName{Namespace: want.Namespace, Name: want.Name})
	switch {
	case err != nil:
		return err
	case cluster == nil:
		return errors.New("there is no such Cluster")
	}
	record := &v1alpha1.ClusterRecord{Spec: v1alpha1.ClusterRecordSpec{
		ClusterName: want.Name,
		Place:       &v1alpha1.ClusterPlace{Rule: rule, Per: want.Per, TopologyVersion: want.TopologyVersion},
	}}
	record.Namespace, record.Name = want.Namespace, placeName(rule, want.Name)
	record.Labels = map[string]string{ruleLabel: rule}
	setOwnerCluster(record, want.Name, cluster.GetUID())
	return p.client.Create(ctx, record)
}

// placeName returns the name of the record of a place.
func placeName(rule, cluster string) string { return "rule." + rule + "." + cluster }

// remove deletes a record as it was read.
func (p *rulePlaces) remove(ctx context.Context, r *v1alpha1.ClusterRecord) error {
	if p.readOnly {
		return writesNothing(r.Spec.Place.Rule)
	}
	return p.client.Delete(ctx, r.DeepCopy(), client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
}

// Free implements hookrule.Places.
func (p *rulePlaces) Free(ctx context.Context, rule string, cluster types.NamespacedName) error {
	if cluster.Namespace == "" {
		return nil // no Cluster
	}
	for range placeAttempts {
		records, err := placesIn(ctx, p.live, rule, client.InNamespace(cluster.Namespace))
		i := slices.IndexFunc(records, func(r v1alpha1.ClusterRecord) bool { return r.Spec.ClusterName == cluster.Name })
		if err == nil && i >= 0 {
			err = p.remove(ctx, &records[i])
		}
		if !apierrors.IsConflict(err) {
			if err = client.IgnoreNotFound(err); err != nil {
				return placesFail(rule, err)
			}
			return nil
		}
	}
	return placesFail(rule, errors.New("others write them all the time"))
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

// see takes note of the rules that there are. inEffect may have earlier generations of them, and lacks those that have
// never been valid.
func (p *rulePlaces) see(rules []*v1alpha1.HookRule, inEffect []registry.Registration) {
	seen := make(map[string]seenRule, len(rules))
	for _, rule := range rules {
		seen[rule.Name] = seenRule{}
	}
	for i := range inEffect {
		rule, _ := inEffect[i].InProcess.(*hookrule.Rule)
		seen[inEffect[i].Name] = seenRule{ended: rule != nil && !rule.TakesPlaces()}
	}
	p.rules.Store(&seen)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.locks, func(name string, lock chan struct{}) bool {
		_, ok := seen[name]
		return !ok && len(lock) == 0
	})
}

// shownIn returns rules with their places, as far as there is room for them.
func (p *rulePlaces) shownIn(rules []status.InProcess) []status.InProcess {
	room := limits.HeldClusters
	byRule := map[string][]hookrule.Place{}
	if p.cached != nil { // the source runs
		records, _ := p.cached(context.Background(), "")
		for i := range records {
			if of := records[i].Spec.Place.Rule; isGiven(&records[i]) {
				byRule[of] = append(byRule[of], placeOf(&records[i]))
			}
		}
	}
	shown := slices.Clone(rules)
	for i := range shown {
		places := byRule[shown[i].Name]
		slices.SortFunc(places, func(a, b hookrule.Place) int {
			return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
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
// concurrency, and makes Clusters own the places that have come back from a backup.
func (p *rulePlaces) sweep(ctx context.Context) {
	records, known := p.cached(ctx, "")
	rules := p.rules.Load()
	if !known || rules == nil {
		return
	}
	for i := range records {
		r := &records[i]
		rule, there := (*rules)[r.Spec.Place.Rule]
		age := time.Since(r.CreationTimestamp.Time)
		over, err := rule.ended || !isGiven(r) && age > limits.PlaceAnnounced, error(nil)
		switch {
		case over:
		case !there && age > limits.PlaceUnknown:
			over, err = p.hasNoRule(ctx, r)
		default:
			over, err = p.look(ctx, r, age)
		}
		if over {
			err = p.remove(ctx, r)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			p.logger.Warn("place of a HookRule cannot be looked after, which is tried again",
				"hookRule", r.Spec.Place.Rule, "namespace", r.Namespace, "cluster", r.Spec.ClusterName, "error", err)
		}
	}
}

// hasNoRule reports whether the rule of a place does not exist: another gateway may be for it.
func (p *rulePlaces) hasNoRule(ctx context.Context, r *v1alpha1.ClusterRecord) (bool, error) {
	list := &v1alpha1.HookRuleList{} // a list, because the gateway has no right to get rules
	err := p.live.List(ctx, list, client.MatchingFields{"metadata.name": r.Spec.Place.Rule})
	return err == nil && len(list.Items) == 0, err
}

// look reports whether a place is no longer needed, and makes its Cluster own it if none does. What the cache shows is
// confirmed by the API server: the place may be newer than the cache. Clusters may come back from a backup after their
// places.
func (p *rulePlaces) look(ctx context.Context, r *v1alpha1.ClusterRecord, age time.Duration) (over bool, err error) {
	cluster := types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.ClusterName}
	place, owned := placeOf(r), ownerCluster(r) != ""
	now, known := p.params.lookUp(hookrule.ClusterReference(), cluster)
	if !known || owned && !hookrule.Over(&place, now) {
		return false, nil
	}
	o, err := p.params.get(ctx, hookrule.ClusterReference(), cluster)
	switch {
	case err != nil:
		return false, err
	case o == nil:
		return owned || age > limits.PlaceUnknown, nil
	case !owned:
		next := r.DeepCopy()
		setOwnerCluster(next, o.GetName(), o.GetUID())
		return false, p.client.Update(ctx, next)
	}
	_, now, err = compact(o)
	return err == nil && hookrule.Over(&place, now), err
}
