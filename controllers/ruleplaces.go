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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/owner"
	"github.com/hookgate/hookgate/registry"
)

// placeAttempts is how often a replica tries to write a record that others write at the same time.
const placeAttempts = 20

// rulePlaces keeps the places of HookRules, and the Clusters that they admit, in ClusterRecords, before a call is
// answered, so that neither a restart nor a move loses one.
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
	// cached returns the records of a rule, of all rules if it is empty; they may be behind the API server, and do not
	// change. It reports whether they are known.
	cached func(ctx context.Context, rule string) ([]v1alpha1.ClusterRecord, bool)

	mu    sync.Mutex
	locks map[string]chan struct{} // so that calls of one replica are in no conflict with each other
}

var _ hookrule.Places = (*rulePlaces)(nil)

// seenRule is a rule that there is.
type seenRule struct {
	// The rule in effect has no concurrency, or no param of admitted Clusters, so that nothing needs its records.
	noPlaces, noAdmissions bool
}

// ended reports whether the rule no longer needs a record.
func (s seenRule) ended(r *v1alpha1.ClusterRecord) bool {
	return isPlace(r) && s.noPlaces || !isPlace(r) && s.noAdmissions
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
		all, err := ruleRecords(ctx, records.cache, rule, client.UnsafeDisableDeepCopy)
		return all, err == nil
	}
}

// ruleLabel of a ClusterRecord is the name of the HookRule that it is of.
const ruleLabel = "hookgate.dev/hook-rule"

// ruleRecords lists the records of a rule, or of all rules if it is empty.
func ruleRecords(
	ctx context.Context, from client.Reader, rule string, options ...client.ListOption,
) ([]v1alpha1.ClusterRecord, error) {
	options = append(options, client.HasLabels{ruleLabel})
	if rule != "" {
		options = append(options, client.MatchingLabels{ruleLabel: rule})
	}
	list := &v1alpha1.ClusterRecordList{}
	err := from.List(ctx, list, options...)
	return slices.DeleteFunc(list.Items, func(r v1alpha1.ClusterRecord) bool {
		return ruleOf(&r) == "" || !r.DeletionTimestamp.IsZero()
	}), err
}

// ruleOf returns the name of the HookRule that a record is of, empty if it is of none.
func ruleOf(r *v1alpha1.ClusterRecord) string {
	switch {
	case r.Spec.Place != nil:
		return r.Spec.Place.Rule
	case r.Spec.Admission != nil:
		return r.Spec.Admission.Rule
	}
	return ""
}

// placeOf returns the place of a record.
func placeOf(r *v1alpha1.ClusterRecord) hookrule.Place {
	return hookrule.Place{
		Namespace: r.Namespace, Name: r.Spec.ClusterName, UID: string(owner.ClusterUID(r)), Per: r.Spec.Place.Per,
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

func isPlace(r *v1alpha1.ClusterRecord) bool { return r.Spec.Place != nil }

// isGiven reports whether a place has been given out, or a Cluster has been admitted.
func isGiven(r *v1alpha1.ClusterRecord) bool {
	if isPlace(r) {
		return !r.Spec.Place.Since.IsZero()
	}
	return !r.Spec.Admission.Since.IsZero()
}

// isOver reports whether a record is no longer needed, by the JSON of its Cluster as it is now, nil if it is gone.
func isOver(r *v1alpha1.ClusterRecord, cluster []byte) bool {
	if isPlace(r) {
		place := placeOf(r)
		return hookrule.Over(&place, cluster)
	}
	return hookrule.Over(&hookrule.Place{UID: string(owner.ClusterUID(r))}, cluster) || hookrule.IsPast(cluster)
}

// Take implements hookrule.Places.
func (p *rulePlaces) Take(
	ctx context.Context, rule string, want hookrule.Place, limit int, beyond bool,
) (hookrule.Allocation, error) {
	// Clusters that wait ask again and again: if none was free when the places were last seen, they wait on.
	if known, ok := p.cached(ctx, rule); ok {
		if _, is := hookrule.Allocate(placesOf(known, isPlace), want, limit, beyond); !is.OK {
			return is, nil
		}
	}
	// Where Clusters cannot be seen to end, places would stay taken.
	if problem := p.params.problem([]hookrule.Reference{hookrule.ClusterReference()}); problem != "" {
		return hookrule.Allocation{}, hook.Errorf(hook.NotReady, "HookRule %q gives out no places: %s", rule, problem)
	}
	var is hookrule.Allocation
	err := p.write(ctx, rule, rule, func() (done bool, err error) {
		is, done, err = p.take(ctx, rule, want, limit, beyond)
		return done, err
	})
	if err != nil {
		return hookrule.Allocation{}, err
	}
	return is, nil
}

// write takes steps until one is the last, in turn with the other calls of this replica that have the same lock, and
// again where others write the records at the same time.
func (p *rulePlaces) write(ctx context.Context, rule, lock string, step func() (done bool, err error)) error {
	unlock, err := p.lock(ctx, lock)
	if err != nil {
		return recordsFail(rule, err)
	}
	defer unlock()
	for range placeAttempts {
		var done bool
		done, err = step()
		switch {
		case err == nil && done:
			return nil
		case err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err):
			return recordsFail(rule, err)
		}
	}
	return recordsFail(rule, cmp.Or(err, errors.New("other writers keep changing the ClusterRecords")))
}

// recordsFail returns the error of a call, which is err if that says itself what is wrong.
func recordsFail(rule string, err error) error {
	if _, says := errors.AsType[*hook.Error](err); says {
		return err
	}
	return hook.Errorf(hook.NotReady, "the ClusterRecords of HookRule %q cannot be read or written: try again", rule).
		WithCause(err)
}

// take does one step towards a place by what the API server has now, and reports whether it is the last one.
func (p *rulePlaces) take(
	ctx context.Context, rule string, want hookrule.Place, limit int, beyond bool,
) (is hookrule.Allocation, done bool, err error) {
	records, err := ruleRecords(ctx, p.live, rule)
	if err != nil {
		return is, false, err
	}
	i := slices.IndexFunc(records, func(r v1alpha1.ClusterRecord) bool {
		return isPlace(&r) && r.Namespace == want.Namespace && r.Spec.ClusterName == want.Name
	})
	if i < 0 {
		if _, is = hookrule.Allocate(placesOf(records, isPlace), want, limit, beyond); !is.OK {
			return is, true, nil
		}
		return is, false, p.announcePlace(ctx, rule, want)
	}
	own := &records[i]
	next := own.DeepCopy()
	next.Spec.Place.TopologyVersion = want.TopologyVersion
	switch uid := string(owner.ClusterUID(own)); {
	case uid != "" && want.UID != "" && uid != want.UID: // of a Cluster that is gone, or the request is wrong
		if _, err := p.placeCluster(ctx, rule, want); err != nil {
			return is, false, err
		}
		return is, false, p.remove(ctx, own)
	case isGiven(own) && own.Spec.Place.TopologyVersion == want.TopologyVersion:
		return hookrule.Allocation{OK: true}, true, nil
	case isGiven(own): // it goes on with another upgrade
		is.OK = true
	default:
		rivals := placesOf(records, func(r *v1alpha1.ClusterRecord) bool {
			return isPlace(r) && r.UID != own.UID && (isGiven(r) || !isBefore(own, r))
		})
		if _, is = hookrule.Allocate(rivals, want, limit, beyond); !is.OK {
			return is, true, p.remove(ctx, own)
		}
		next.Spec.Place.Per, next.Spec.Place.Since = want.Per, want.Since
	}
	return is, true, p.update(ctx, next)
}

// isBefore reports whether a record was written before another one.
func isBefore(a, b *v1alpha1.ClusterRecord) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

func writesNothing(rule string) error {
	return hook.Errorf(hook.NotReady,
		"HookRule %q has to write a ClusterRecord, but this gateway writes nothing (--read-only)", rule)
}

// announcePlace makes the record of a place that is not given out yet.
func (p *rulePlaces) announcePlace(ctx context.Context, rule string, want hookrule.Place) error {
	if p.readOnly {
		return writesNothing(rule)
	}
	cluster, err := p.placeCluster(ctx, rule, want)
	if err != nil {
		return err
	}
	place := v1alpha1.ClusterPlace{Rule: rule, Per: want.Per, TopologyVersion: want.TopologyVersion}
	return p.announce(ctx, "rule."+rule, cluster, v1alpha1.ClusterRecordSpec{Place: &place})
}

// placeCluster asks the API server for the Cluster that wants a place. The error says if a request is not about a
// Cluster of this cluster: asking again would not help.
func (p *rulePlaces) placeCluster(
	ctx context.Context, rule string, want hookrule.Place,
) (*unstructured.Unstructured, error) {
	name := types.NamespacedName{Namespace: want.Namespace, Name: want.Name}
	cluster, err := p.params.get(ctx, hookrule.ClusterReference(), name)
	switch {
	case err != nil:
		return nil, err
	case cluster == nil:
		return nil, hook.Errorf(hook.NotReady,
			"HookRule %q gives Cluster %q no place: the gateway's cluster has no such Cluster", rule, name)
	case want.UID != "" && want.UID != string(cluster.GetUID()):
		return nil, hook.Errorf(hook.NotReady, "HookRule %q gives Cluster %q no place: the request has uid %q, but the "+
			"Cluster has uid %q", rule, name, want.UID, cluster.GetUID())
	}
	return cluster, nil
}

// announce makes a record without since for a Cluster. Its name begins with prefix.
func (p *rulePlaces) announce(
	ctx context.Context, prefix string, cluster client.Object, spec v1alpha1.ClusterRecordSpec,
) error {
	spec.ClusterName = cluster.GetName()
	record := &v1alpha1.ClusterRecord{Spec: spec}
	rule := ruleOf(record)
	if p.readOnly {
		return writesNothing(rule)
	}
	record.Namespace, record.Name = cluster.GetNamespace(), owner.RecordName(prefix+"."+cluster.GetName())
	record.Labels = map[string]string{ruleLabel: rule}
	owner.SetCluster(record, cluster)
	return p.client.Create(ctx, record)
}

// update writes a record.
func (p *rulePlaces) update(ctx context.Context, r *v1alpha1.ClusterRecord) error {
	if p.readOnly {
		return writesNothing(ruleOf(r))
	}
	return p.client.Update(ctx, r)
}

// remove deletes a record as it was read.
func (p *rulePlaces) remove(ctx context.Context, r *v1alpha1.ClusterRecord) error {
	if p.readOnly {
		return writesNothing(ruleOf(r))
	}
	return p.client.Delete(ctx, r.DeepCopy(), client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
}

// Free implements hookrule.Places.
func (p *rulePlaces) Free(ctx context.Context, rule string, cluster types.NamespacedName) error {
	if cluster.Namespace == "" {
		return nil // no Cluster
	}
	return p.write(ctx, rule, rule, func() (done bool, err error) {
		records, err := ruleRecords(ctx, p.live, rule, client.InNamespace(cluster.Namespace))
		i := slices.IndexFunc(records, func(r v1alpha1.ClusterRecord) bool {
			return isPlace(&r) && r.Spec.ClusterName == cluster.Name
		})
		if err != nil || i < 0 {
			return true, err
		}
		return true, p.remove(ctx, &records[i])
	})
}

// lock waits until no other call of this replica has the lock.
func (p *rulePlaces) lock(ctx context.Context, name string) (unlock func(), err error) {
	p.mu.Lock()
	lock := p.locks[name]
	if lock == nil {
		lock = make(chan struct{}, 1)
		p.locks[name] = lock
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
		seen[inEffect[i].Name] = seenRule{
			noPlaces: rule != nil && !rule.TakesPlaces(), noAdmissions: rule != nil && !rule.Admits(),
		}
	}
	p.rules.Store(&seen)
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.locks, func(name string, lock chan struct{}) bool {
		_, ok := seen[strings.TrimPrefix(name, admittedPrefix)]
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
			if r := &records[i]; isPlace(r) && isGiven(r) {
				byRule[r.Spec.Place.Rule] = append(byRule[r.Spec.Place.Rule], placeOf(r))
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

// run removes the records that no call removes, while this replica leads, until ctx is done.
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

// sweep removes the records that are over and those that their rules no longer need, and makes Clusters own the records
// that have come back from a backup.
func (p *rulePlaces) sweep(ctx context.Context) {
	records, known := p.cached(ctx, "")
	rules := p.rules.Load()
	if !known || rules == nil {
		return
	}
	for i := range records {
		r := &records[i]
		rule, there := (*rules)[ruleOf(r)]
		age := time.Since(r.CreationTimestamp.Time)
		over, err := rule.ended(r) || !isGiven(r) && age > limits.PlaceAnnounced, error(nil)
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
			p.logger.Warn("ClusterRecord of a HookRule cannot be cleaned up; trying again",
				"hookRule", ruleOf(r), "namespace", r.Namespace, "cluster", r.Spec.ClusterName, "error", err)
		}
	}
}

// hasNoRule reports whether the rule of a record does not exist: another gateway may be for it.
func (p *rulePlaces) hasNoRule(ctx context.Context, r *v1alpha1.ClusterRecord) (bool, error) {
	list := &v1alpha1.HookRuleList{} // a list, because the gateway has no right to get rules
	err := p.live.List(ctx, list, client.MatchingFields{"metadata.name": ruleOf(r)})
	return err == nil && len(list.Items) == 0, err
}

// look reports whether a record is no longer needed, and makes its Cluster own it if none does. What the cache shows is
// confirmed by the API server: the record may be newer than the cache. Clusters may come back from a backup after their
// records.
func (p *rulePlaces) look(ctx context.Context, r *v1alpha1.ClusterRecord, age time.Duration) (over bool, err error) {
	cluster := types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.ClusterName}
	owned := owner.ClusterUID(r) != ""
	now, known := p.params.lookUp(hookrule.ClusterReference(), cluster)
	if !known || owned && !isOver(r, now) {
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
		owner.SetCluster(next, o)
		return false, p.client.Update(ctx, next)
	}
	_, now, err = compact(o)
	return err == nil && isOver(r, now), err
}
