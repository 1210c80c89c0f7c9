// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// missingFor is how long a provider ID must be missing from complete answers before it leaves the list: Cluster API
// then deletes its Node.
const missingFor = 30 * time.Second

// missing knows since when provider IDs, or HookgateMachines, have been missing from the answers about pools. It
// forgets them when the process ends, which keeps what is missing for longer. It is safe for concurrent use.
type missing struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]map[string]time.Time
}

func newMissing() *missing { return &missing{pools: map[types.NamespacedName]map[string]time.Time{}} }

func (m *missing) of(pool types.NamespacedName) map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pools[pool]
}

func (m *missing) set(pool types.NamespacedName, ids map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools[pool] = ids
}

func (m *missing) forget(pool types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pools, pool)
}

// nextList returns the provider IDs of a pool after a complete answer, and since when those that stay have been
// missing: an ID leaves once two answers at least missingFor apart lacked it, and at once if it was to be removed.
func nextList(
	recorded, answered, removed []string, since map[string]time.Time, now time.Time,
) (list []string, next map[string]time.Time) {
	list, next = slices.Clone(answered), map[string]time.Time{}
	exists, unwanted := setOf(answered), setOf(removed)
	for _, id := range recorded {
		if exists[id] || unwanted[id] {
			continue
		}
		first, ok := since[id]
		if ok && now.Sub(first) >= missingFor {
			continue
		}
		if !ok {
			first = now
		}
		next[id] = first
		list = append(list, id)
	}
	slices.Sort(list)
	return list, next
}

// reconcileGroup asks the extension for the instances of a pool.
func (r *pools) reconcileGroup(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, w *scope, resolved []byte,
) (reconcile.Result, error) {
	var machines []infrav1.HookgateMachine
	if asMachines(p) {
		var err error
		if machines, err = r.machinesOf(ctx, r.client, p, w); err != nil {
			return reconcile.Result{}, err
		}
	}
	size, err := r.sizeOf(ctx, p, w, machines)
	if err != nil {
		return reconcile.Result{}, err
	}
	req, b, err := r.groupRequest(ctx, p, w, resolved, size)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(p.Status.Initialization))
		return later(jitter(provisioningInterval)), r.write(ctx, p, desired)
	}
	key, in := client.ObjectKeyFromObject(p), digest("ReconcileMachinePool", req)
	if d := r.pace.wait(key, in); d > 0 {
		return later(d), r.write(ctx, p, desired)
	}
	if p, desired, err = r.holdGroup(ctx, p, desired, size); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	known := map[string]bool{}
	for _, id := range p.Spec.ProviderIDList {
		known[id] = true
	}
	answer, err := r.calls.ReconcileMachinePool(ctx, w.target(w.handlers().ReconcileMachinePool), req, known)
	if err != nil {
		result, err := r.failure(r.pace, desired, key, in, err)
		if err != nil {
			return result, err
		}
		return result, r.record(ctx, r.pace, p, desired)
	}
	b, err = r.doubted(ctx, p, w, answer, size)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		setUnsynced(desired, b.reason, b.message)
		return later(r.pace.failed(key, in, 0)), r.record(ctx, r.pace, p, desired)
	}
	usual, since := decideGroup(desired, answer, req.GetRevision(), size, r.missing.of(key), r.now())
	if provisioned(desired.Status.Initialization) && !grows(answer, size) {
		allowMove(desired)
	}
	if err := r.write(ctx, p, desired); err != nil {
		return reconcile.Result{}, err
	}
	r.missing.set(key, since)
	if asMachines(p) {
		if err := r.showInstances(ctx, p, w, machines, answer, req); err != nil {
			return reconcile.Result{}, err
		}
	}
	next := r.pace.answered(key, in, interval(usual, retryAfter(answer)))
	if size.early {
		next = min(next, time.Second) // to choose what goes, without another call
	}
	return later(next), nil
}

// holdGroup keeps a group that is about to grow from being moved, until all its instances have been recorded. It
// returns the pool as it is stored.
func (r *pools) holdGroup(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, size size,
) (stored, next *infrav1.HookgateMachinePool, err error) {
	if size.replicas == nil || *size.replicas <= ptr.Deref(p.Status.Replicas, 0) {
		return p, desired, nil
	}
	stored, err = identify(ctx, r.base, p, infrav1.MachinePoolFinalizer,
		func(p *infrav1.HookgateMachinePool) *string { return &p.Spec.ExternalID }, blockMove(nil, false))
	if err != nil {
		return p, desired, err
	}
	return stored, continued(stored, desired), nil
}

// grows reports whether an answer lacks instances that were asked for, or their provider IDs.
func grows(a *infrahooksv1alpha1.ReconcileMachinePoolResponse, size size) bool {
	return int(ptr.Deref(size.replicas, 0)) > len(a.GetInstances()) ||
		slices.ContainsFunc(a.GetInstances(), func(i *infrahooksv1alpha1.Instance) bool { return i.GetProviderId() == "" })
}

// groupRequest returns the request for a pool, without objects of Cluster API, or why there can be none.
func (r *pools) groupRequest(
	ctx context.Context, p *infrav1.HookgateMachinePool, w *scope, resolved []byte, size size,
) (*infrahooksv1alpha1.ReconcileMachinePoolRequest, *block, error) {
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if b != nil || err != nil {
		return nil, b, err
	}
	template := w.machinePool.Spec.Template.Spec
	data, format, b, err := r.secrets.bootstrap(ctx, p.Namespace, ptr.Deref(template.Bootstrap.DataSecretName, ""))
	if b != nil || err != nil {
		return nil, b, err
	}
	req := &infrahooksv1alpha1.ReconcileMachinePoolRequest{
		Subject:  w.subject(p, w.machinePool.Name, p.Spec.ExternalID, resolved, credentials),
		Revision: revisionOf(p, w.machinePool), Version: template.Version, FailureDomains: w.machinePool.Spec.FailureDomains,
		Bootstrap: &infrahooksv1alpha1.Bootstrap{Data: data, Format: format}, Replicas: size.replicas, Remove: size.remove,
	}
	return req, nil, nil
}

// doubted returns why a complete answer must not be used.
func (r *pools) doubted(
	ctx context.Context, p *infrav1.HookgateMachinePool, w *scope, a *infrahooksv1alpha1.ReconcileMachinePoolResponse,
	size size,
) (*block, error) {
	unwanted := setOf(size.remove)
	kept := slices.ContainsFunc(p.Spec.ProviderIDList, func(id string) bool { return !unwanted[id] })
	if len(a.GetInstances()) == 0 && kept && ptr.Deref(w.machinePool.Spec.Replicas, 1) > 0 &&
		p.Annotations[infrav1.AcceptEmptyAnnotation] != p.Spec.ExternalID {
		return stops(infrav1.EmptyListReason, fmt.Sprintf("the extension answers that the pool has no "+
			"instances. If that is right, confirm it with the annotation %s: %s",
			infrav1.AcceptEmptyAnnotation, p.Spec.ExternalID)), nil
	}
	own := a.GetProviderId()
	if p.Spec.ProviderID != "" && own != "" && own != p.Spec.ProviderID { // the list is that of something else
		return stops(infrav1.ProviderIDConflictReason, fmt.Sprintf("the extension returned the provider ID %q "+
			"for the pool, but %q is recorded and never changes: the extension must find the pool by its "+
			"externalID",
			own, p.Spec.ProviderID)), nil
	}
	return r.taken(ctx, p, a)
}

// taken returns why an answer must not be used that has the provider ID of another object.
func (r *pools) taken(
	ctx context.Context, p *infrav1.HookgateMachinePool, a *infrahooksv1alpha1.ReconcileMachinePoolResponse,
) (*block, error) {
	owner := ownerKey{infrav1.HookgateMachinePoolKind, client.ObjectKeyFromObject(p)}
	ids := []string{a.GetProviderId()}
	for _, i := range a.GetInstances() {
		ids = append(ids, i.GetProviderId())
	}
	known := setOf(p.Spec.ProviderIDList)
	for _, id := range ids {
		if id == "" || id == p.Spec.ProviderID || known[id] {
			continue
		}
		other, err := r.ids.claim(ctx, owner, id)
		if err != nil {
			return nil, err
		}
		if other != "" {
			return stops(infrav1.DuplicateProviderIDReason, fmt.Sprintf(
				"the extension returned the provider ID %q, which belongs to %s", id, other)), nil
		}
	}
	return nil, nil
}

// decideGroup records the instances of a pool, and returns the usual time to the next call, and since when provider IDs
// have been missing.
func decideGroup(
	p *infrav1.HookgateMachinePool, a *infrahooksv1alpha1.ReconcileMachinePoolResponse, revision string, size size,
	since map[string]time.Time, now time.Time,
) (time.Duration, map[string]time.Time) {
	var ids []string
	ready, old := 0, 0
	p.Status.Instances = nil
	list := slices.Clone(a.GetInstances())
	slices.SortFunc(list, func(a, b *infrahooksv1alpha1.Instance) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, i := range list {
		isReady := i.GetPhase() == infrahooksv1alpha1.Phase_PHASE_READY
		if isReady {
			ready++
		}
		if i.GetRevision() != "" && i.GetRevision() != revision {
			old++
		}
		if i.GetProviderId() != "" {
			ids = append(ids, i.GetProviderId())
		}
		if len(p.Status.Instances) < limits.ReportedInstances {
			addresses := addressesOf(i.GetAddresses())
			p.Status.Instances = append(p.Status.Instances, infrav1.MachinePoolInstance{
				InstanceName: i.GetName(), ProviderID: i.GetProviderId(), Ready: new(isReady), Version: i.GetVersion(),
				Revision: i.GetRevision(), FailureDomain: i.GetFailureDomain(), Addresses: addresses[:min(len(addresses), 16)],
			})
		}
	}
	setSeen(p, a)
	setSynced(p)
	p.Spec.ProviderID = cmp.Or(p.Spec.ProviderID, a.GetProviderId())
	p.Spec.ProviderIDList, since = nextList(p.Spec.ProviderIDList, ids, size.remove, since, now)
	p.Status.Replicas = new(int32(len(a.GetInstances())))
	if asMachines(p) {
		p.Status.InfrastructureMachineKind = infrav1.HookgateMachineKind
	}
	wanted := int(ptr.Deref(size.wanted, int32(len(list))))
	if a.GetPhase() == infrahooksv1alpha1.Phase_PHASE_READY {
		decidePoolReady(p, wanted, ready, len(list), old, false)
	}
	switch {
	case len(since) > 0:
		return missingFor + time.Second, since
	case a.GetPhase() == infrahooksv1alpha1.Phase_PHASE_READY && saysReady(p):
		return poolInterval, since
	}
	return provisioningInterval, since
}

// deleteGroup deletes a pool outside, with the instances that machines stand for.
func (r *pools) deleteGroup(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, w *scope, machines []infrav1.HookgateMachine,
) (reconcile.Result, error) {
	handler := w.handlers().DeleteMachinePool
	if b := w.deletable(handler, p.Namespace, provisioned(p.Status.Initialization)); b != nil {
		b.apply(desired, true)
		return reconcile.Result{}, r.write(ctx, p, desired)
	}
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, true)
		return later(jitter(deletingInterval)), r.write(ctx, p, desired)
	}
	name := p.Name
	if w.machinePool != nil {
		name = w.machinePool.Name
	}
	req := &infrahooksv1alpha1.DeleteMachinePoolRequest{Subject: w.subject(p, name, p.Spec.ExternalID,
		r.lenient(ctx, p, w.class, p.Spec.Parameters), credentials)}
	key, in := client.ObjectKeyFromObject(p), digest("DeleteMachinePool", req)
	if d := r.pace.wait(key, in); d > 0 {
		return later(d), r.write(ctx, p, desired)
	}
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	answer, err := r.calls.DeleteMachinePool(ctx, w.target(handler), req)
	if err != nil {
		result, err := r.failure(r.pace, desired, key, in, err)
		if err != nil {
			return result, err
		}
		return result, r.record(ctx, r.pace, p, desired)
	}
	if answer.GetState() == infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE {
		r.pace.forget(key)
		if err := r.releaseInstances(ctx, machines); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.release(ctx, p, infrav1.MachinePoolFinalizer)
	}
	decideDeleting(desired, cmp.Or(answer.GetMessage(), deletingMessage))
	return later(r.pace.answered(key, in, interval(deletingInterval, retryAfter(answer)))),
		r.record(ctx, r.pace, p, desired)
}
