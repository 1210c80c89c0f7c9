// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// machines reconciles HookgateMachines.
type machines struct {
	*base
	pace     *scheduler
	creation *creation
}

// Reconcile implements reconcile.Reconciler.
func (r *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &infrav1.HookgateMachine{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.forget(req.NamespacedName)
			r.ids.forget(ownerKey{infrav1.HookgateMachineKind, req.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(m) || unmanaged(m) {
		return reconcile.Result{}, nil
	}
	w, err := r.observeMachine(ctx, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := m.DeepCopy()
	cause := pausedBy(w.cluster, m)
	setPaused(desired, cause)
	switch {
	case cause != "":
		r.pace.forget(req.NamespacedName) // what happens meanwhile is looked at afterwards
		allowMove(desired)
		return reconcile.Result{}, r.write(ctx, m, desired)
	case !m.DeletionTimestamp.IsZero():
		return r.delete(ctx, m, desired, w)
	case m.Annotations[infrav1.InstanceAnnotation] != "":
		// The pool does the rest. Both write the status, so this controller does only if it has to.
		if !meta.IsStatusConditionTrue(m.Status.Conditions, infrav1.PausedCondition) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, r.write(ctx, m, desired)
	}
	return r.reconcile(ctx, m, desired, w)
}

// reconcile brings a machine that should exist closer to it.
func (r *machines) reconcile(
	ctx context.Context, m, desired *infrav1.HookgateMachine, w *scope,
) (reconcile.Result, error) {
	b, err := r.duplicate(ctx, m, m.Spec.ExternalID, &infrav1.HookgateMachineList{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(m.Status.Initialization))
		return later(jitter(poolInterval)), r.write(ctx, m, desired)
	}
	handler := w.handlers().ReconcileMachine
	if b := machineBlock(m, w, handler); b != nil {
		b.apply(desired, provisioned(m.Status.Initialization))
		return reconcile.Result{}, r.write(ctx, m, desired)
	}
	m, err = r.current(ctx, m)
	if err != nil || !m.DeletionTimestamp.IsZero() || unmanaged(m) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired = m.DeepCopy() // the conditions of the given one may be older
	setPaused(desired, "")
	req, b, err := r.request(ctx, m, desired, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(m.Status.Initialization))
		return later(jitter(provisioningInterval)), r.write(ctx, m, desired)
	}
	m, result, err := r.identified(ctx, m, desired, w)
	if err != nil || !result.IsZero() {
		return result, client.IgnoreNotFound(err)
	}
	desired = continued(m, desired)
	req.Subject.ExternalId = m.Spec.ExternalID
	return r.call(ctx, r.pace, m, desired, "ReconcileMachine", req, func(in inputs) (reconcile.Result, error) {
		return r.ask(ctx, m, desired, w, handler, req, in)
	})
}

// identified stores what identifies a machine outside, once it may be made. Otherwise, the result says when to look at
// it again.
func (r *machines) identified(
	ctx context.Context, m, desired *infrav1.HookgateMachine, w *scope,
) (*infrav1.HookgateMachine, reconcile.Result, error) {
	if m.Spec.ExternalID == "" && m.Spec.ProviderID == "" && w.machine != nil && w.pool == nil {
		if !r.creation.take(m.Namespace) {
			return m, later(jitter(turnInterval)), nil
		}
		defer r.creation.done(m.Namespace)
		b, wait, err := r.mayBeMade(ctx, m, w)
		switch {
		case err != nil:
			return m, reconcile.Result{}, err
		case b != nil:
			b.apply(desired, false)
			return m, later(wait), r.write(ctx, m, desired)
		case wait > 0:
			return m, later(jitter(wait)), nil
		}
		r.creation.let(m)
	}
	m, err := identify(ctx, r.base, m, infrav1.MachineFinalizer,
		func(m *infrav1.HookgateMachine) *string { return &m.Spec.ExternalID },
		blockMove(recordOf(w), m.Spec.ProviderID != ""))
	return m, reconcile.Result{}, err
}

// current returns the machine as it is stored. A machine without a provider ID is read past the cache: one that has
// just been recorded must not be made again.
func (r *machines) current(ctx context.Context, m *infrav1.HookgateMachine) (*infrav1.HookgateMachine, error) {
	if m.Spec.ProviderID != "" {
		return m, nil
	}
	read := &infrav1.HookgateMachine{}
	return read, r.live.Get(ctx, client.ObjectKeyFromObject(m), read)
}

// machineBlock returns why the extension must not be called about a machine that should exist; nil if it may.
func machineBlock(m *infrav1.HookgateMachine, w *scope, handler infrav1.HandlerName) *block {
	recorded := m.Spec.ProviderID != "" || provisioned(m.Status.Initialization)
	switch {
	case w.machine == nil && w.pool == nil:
		return waits(infrav1.WaitingForOwnerReason, "Cluster API has not set the Machine as the owner yet")
	case w.pool != nil && w.machinePool == nil:
		return waits(infrav1.WaitingForOwnerReason, "the MachinePool does not exist")
	case w.cluster == nil:
		return waits(infrav1.WaitingForOwnerReason, fmt.Sprintf("Cluster %q does not exist", w.clusterName))
	}
	if b := w.reachable(handler, m.Spec.ExternalID != ""); b != nil {
		return b
	}
	if b := w.usable(m.Namespace); b != nil {
		return b
	}
	if b := w.unprovisioned(recorded); b != nil {
		return b
	}
	if !recorded && w.bootstrapSecret() == "" {
		return waits(infrav1.WaitingForBootstrapDataReason, "Cluster API has not set the bootstrap data yet")
	}
	return nil
}

// bootstrapSecret returns the name of the Secret with the bootstrap data of a machine. That of a pool's Machines is
// empty, and the MachinePool has it.
func (w *scope) bootstrapSecret() string {
	if w.pool != nil && w.machinePool != nil {
		return ptr.Deref(w.machinePool.Spec.Template.Spec.Bootstrap.DataSecretName, "")
	}
	if w.machine != nil {
		return ptr.Deref(w.machine.Spec.Bootstrap.DataSecretName, "")
	}
	return ""
}

// request returns the request for a machine, without objects of Cluster API, or why there can be none.
func (r *machines) request(
	ctx context.Context, m, desired *infrav1.HookgateMachine, w *scope,
) (*infrahooksv1alpha1.ReconcileMachineRequest, *block, error) {
	resolved, b := r.resolve(ctx, desired, w.class, m.Spec.Parameters)
	if b != nil {
		return nil, b, nil
	}
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if b != nil || err != nil {
		return nil, b, err
	}
	req := &infrahooksv1alpha1.ReconcileMachineRequest{
		Subject:    w.subject(m, w.machineName(m), m.Spec.ExternalID, resolved, credentials),
		ProviderId: m.Spec.ProviderID,
	}
	switch {
	case w.pool != nil:
		req.Version = m.Annotations[infrav1.VersionAnnotation]
		req.FailureDomain = m.Annotations[infrav1.FailureDomainAnnotation]
	case w.machine != nil:
		_, req.ControlPlane = w.machine.Labels[clusterv1.MachineControlPlaneLabel]
		req.Version, req.FailureDomain = w.machine.Spec.Version, w.machine.Spec.FailureDomain
	}
	if m.Spec.ProviderID != "" || provisioned(m.Status.Initialization) {
		return req, nil, nil
	}
	data, format, b, err := r.secrets.bootstrap(ctx, m.Namespace, w.bootstrapSecret())
	if b != nil || err != nil {
		return nil, b, err
	}
	req.Bootstrap = &infrahooksv1alpha1.Bootstrap{Data: data, Format: format}
	return req, nil, nil
}

// machineName returns the name of a machine for people.
func (w *scope) machineName(m *infrav1.HookgateMachine) string {
	if w.machine != nil {
		return w.machine.Name
	}
	return m.Name
}

// ask makes the call, and records what it says on desired. in are the inputs of the request.
func (r *machines) ask(
	ctx context.Context, m, desired *infrav1.HookgateMachine, w *scope, handler infrav1.HandlerName,
	req *infrahooksv1alpha1.ReconcileMachineRequest, in inputs,
) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(m)
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	answer, err := r.calls.ReconcileMachine(ctx, w.target(handler), req)
	if err != nil {
		return r.failure(r.pace, desired, key, in, err)
	}
	if id := answer.GetProviderId(); id != "" && m.Spec.ProviderID == "" {
		other, err := r.ids.claim(ctx, ownerKey{infrav1.HookgateMachineKind, key}, id)
		if err != nil {
			return reconcile.Result{}, err
		}
		if other != "" {
			setUnsynced(desired, infrav1.DuplicateProviderIDReason, fmt.Sprintf(
				"the extension returned the provider ID %q, which belongs to %s: the extension must "+
					"return a different ID for each machine", id, other))
			return later(r.pace.failed(key, in, 0)), nil
		}
	}
	usual := decideMachine(desired, answer)
	if desired.Spec.ProviderID != "" {
		allowMove(desired)
	}
	if usual == 0 { // an answer that contradicts what is recorded
		return later(r.pace.failed(key, in, 0)), nil
	}
	if m.Spec.ProviderID == "" && desired.Spec.ProviderID != "" {
		// The next request differs only in saying that the machine exists, which is no reason for another call.
		next := &infrahooksv1alpha1.ReconcileMachineRequest{
			Subject: req.GetSubject(), ControlPlane: req.GetControlPlane(), Version: req.GetVersion(),
			FailureDomain: req.GetFailureDomain(), ProviderId: desired.Spec.ProviderID,
		}
		next.Subject.Cluster, next.Subject.Machine, next.Subject.MachinePool = nil, nil, nil
		in = digest("ReconcileMachine", next)
	}
	return later(r.pace.answered(key, in, interval(usual, retryAfter(answer)))), nil
}

// delete brings a machine that should be gone closer to it.
func (r *machines) delete(
	ctx context.Context, m, desired *infrav1.HookgateMachine, w *scope,
) (reconcile.Result, error) {
	if !hasFinalizer(m, infrav1.MachineFinalizer) {
		return reconcile.Result{}, nil
	}
	instance := m.Annotations[infrav1.InstanceAnnotation] != ""
	if m.Spec.ExternalID == "" && !instance { // nothing was ever called
		return reconcile.Result{}, r.release(ctx, m, infrav1.MachineFinalizer)
	}
	if b, err := r.duplicate(ctx, m, m.Spec.ExternalID, &infrav1.HookgateMachineList{}); err != nil {
		return reconcile.Result{}, err
	} else if b != nil {
		return reconcile.Result{}, r.releaseDuplicate(ctx, m, infrav1.MachineFinalizer)
	}
	if abandoned(m, m.Spec.ExternalID) {
		return reconcile.Result{}, r.abandon(ctx, m, infrav1.MachineFinalizer, m.Spec.ExternalID, w.className)
	}
	set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, deletingMessage)
	if instance {
		if w.pool == nil {
			set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, "the HookgateMachinePool, "+
				"which removes the instance, does not exist: restore it, or set the annotation "+infrav1.AbandonAnnotation)
		}
		return reconcile.Result{}, r.write(ctx, m, desired) // the pool releases it
	}
	handler := w.handlers().DeleteMachine
	if b := w.deletable(handler, m.Namespace, provisioned(m.Status.Initialization)); b != nil {
		b.apply(desired, true)
		return reconcile.Result{}, r.write(ctx, m, desired)
	}
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, true)
		return later(jitter(deletingInterval)), r.write(ctx, m, desired)
	}
	req := &infrahooksv1alpha1.DeleteMachineRequest{ProviderId: m.Spec.ProviderID}
	req.Subject = w.subject(m, w.machineName(m), m.Spec.ExternalID,
		r.lenient(ctx, m, w.class, m.Spec.Parameters), credentials)
	key, in := client.ObjectKeyFromObject(m), digest("DeleteMachine", req)
	if d := r.pace.wait(key, in); d > 0 {
		return later(d), r.write(ctx, m, desired)
	}
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	answer, err := r.calls.DeleteMachine(ctx, w.target(handler), req)
	if err != nil {
		result, err := r.failure(r.pace, desired, key, in, err)
		if err != nil {
			return result, err
		}
		return result, r.record(ctx, r.pace, m, desired)
	}
	if answer.GetState() == infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE {
		r.pace.forget(key)
		return reconcile.Result{}, r.release(ctx, m, infrav1.MachineFinalizer)
	}
	decideDeleting(desired, answer.GetMessage())
	return later(r.pace.answered(key, in, interval(deletingInterval, retryAfter(answer)))),
		r.record(ctx, r.pace, m, desired)
}
