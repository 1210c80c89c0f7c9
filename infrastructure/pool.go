// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// pools reconciles HookgateMachinePools: with machines that it makes and removes one by one, or through the hooks for
// pools.
type pools struct {
	*base
	pace    *scheduler
	missing *missing // provider IDs of the list
	absent  *missing // HookgateMachines of instances, by name
}

// Reconcile implements reconcile.Reconciler.
func (r *pools) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := &infrav1.HookgateMachinePool{}
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.forget(req.NamespacedName)
			r.missing.forget(req.NamespacedName)
			r.absent.forget(req.NamespacedName)
			r.ids.forget(ownerKey{infrav1.HookgateMachinePoolKind, req.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(p) || unmanaged(p) {
		return reconcile.Result{}, nil
	}
	w, err := r.observePool(ctx, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := p.DeepCopy()
	cause := pausedBy(w.cluster, p)
	setPaused(desired, cause)
	switch {
	case cause != "":
		r.pace.forget(req.NamespacedName)
		allowMove(desired)
		return reconcile.Result{}, r.write(ctx, p, desired)
	case !p.DeletionTimestamp.IsZero():
		return r.delete(ctx, p, desired, w)
	}
	return r.reconcile(ctx, p, desired, w)
}

// reconcile brings a pool that should exist closer to it.
func (r *pools) reconcile(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, w *scope,
) (reconcile.Result, error) {
	b, err := r.duplicate(ctx, p, p.Spec.ExternalID, &infrav1.HookgateMachinePoolList{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(p.Status.Initialization))
		return later(jitter(poolInterval)), r.write(ctx, p, desired)
	}
	if b := poolBlock(p, w); b != nil {
		b.apply(desired, provisioned(p.Status.Initialization))
		return reconcile.Result{}, r.write(ctx, p, desired)
	}
	resolved, b := r.resolve(ctx, desired, w.class, p.Spec.Parameters)
	if b != nil {
		b.apply(desired, provisioned(p.Status.Initialization))
		return reconcile.Result{}, r.write(ctx, p, desired)
	}
	p, err = identify(ctx, r.base, p, infrav1.MachinePoolFinalizer,
		func(p *infrav1.HookgateMachinePool) *string { return &p.Spec.ExternalID },
		recordAndHold(p, w))
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired = continued(p, desired)
	announceCapacity(desired, w.class, resolved)
	if p.OfMachines(w.class) {
		return r.compose(ctx, p, desired, w)
	}
	return r.reconcileGroup(ctx, p, desired, w, resolved)
}

// announceCapacity records what an instance of a pool has, for an autoscaler, if the extension announces it.
func announceCapacity(p *infrav1.HookgateMachinePool, class *infrav1.InfrastructureClass, resolved []byte) {
	p.Status.Capacity, p.Status.NodeInfo = nil, infrav1.NodeInfo{}
	if c := capacityOf(class.Status.MachineCapacities, resolved); c != nil {
		p.Status.Capacity, p.Status.NodeInfo = c.Capacity, c.NodeInfo
	}
}

// asMachines reports whether the instances of a pool are to be Machines.
func asMachines(p *infrav1.HookgateMachinePool) bool {
	return p.Spec.InstanceManagement != infrav1.InstanceManagementGroup
}

// recordOfPool returns the annotations of a pool: those of recordOf, and what makes its instances.
func recordOfPool(p *infrav1.HookgateMachinePool, w *scope) map[string]string {
	record := recordOf(w)
	switch {
	case !asMachines(p):
		record[infrav1.InstancesAnnotation] = ""
	case p.OfMachines(w.class):
		record[infrav1.InstancesAnnotation] = infrav1.InstancesOfMachines
	default:
		record[infrav1.InstancesAnnotation] = infrav1.InstancesOfGroup
	}
	return record
}

// recordAndHold returns the annotations of recordOfPool, and the one that keeps a group from being moved until it has
// been made. A group that has been made keeps what it has: the next answer decides.
func recordAndHold(p *infrav1.HookgateMachinePool, w *scope) map[string]string {
	record, ofMachines := recordOfPool(p, w), p.OfMachines(w.class)
	if !ofMachines && provisioned(p.Status.Initialization) {
		return record
	}
	return blockMove(record, ofMachines)
}

// poolBlock returns why nothing can be done about a pool that should exist; nil if something can.
func poolBlock(p *infrav1.HookgateMachinePool, w *scope) *block {
	switch {
	case w.machinePool == nil:
		return waits(infrav1.WaitingForOwnerReason, "Cluster API has not set the MachinePool as the owner yet")
	case w.cluster == nil:
		return waits(infrav1.WaitingForOwnerReason, fmt.Sprintf("Cluster %q does not exist", w.clusterName))
	}
	handler, ofMachines := w.handlers().ReconcileMachinePool, p.OfMachines(w.class)
	if ofMachines {
		handler = w.handlers().ReconcileMachine
	}
	if b := w.reachable(handler, p.Spec.ExternalID != ""); b != nil {
		return b
	}
	if b := w.usable(p.Namespace); b != nil {
		return b
	}
	if b := w.unprovisioned(false); b != nil {
		return b
	}
	if ptr.Deref(w.machinePool.Spec.Template.Spec.Bootstrap.DataSecretName, "") == "" {
		return waits(infrav1.WaitingForBootstrapDataReason, "Cluster API has not set the bootstrap data yet")
	}
	if ofMachines && !clusterapi.DecidesReplicas(w.machinePool) {
		return stops(infrav1.ReplicasManagedReason, fmt.Sprintf("the annotation %s says that another program sets the "+
			"size of the MachinePool, but the pool consists of single machines. The size does not change until you remove "+
			"the annotation, or use a class whose extension has hooks for pools", clusterv1.ReplicasManagedByAnnotation))
	}
	return nil
}

// delete removes the machines of a pool, and then the pool.
func (r *pools) delete(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, w *scope,
) (reconcile.Result, error) {
	if !hasFinalizer(p, infrav1.MachinePoolFinalizer) {
		return reconcile.Result{}, nil
	}
	if p.Spec.ExternalID == "" {
		return reconcile.Result{}, r.release(ctx, p, infrav1.MachinePoolFinalizer)
	}
	if b, err := r.duplicate(ctx, p, p.Spec.ExternalID, &infrav1.HookgateMachinePoolList{}); err != nil {
		return reconcile.Result{}, err
	} else if b != nil {
		return reconcile.Result{}, r.releaseDuplicate(ctx, p, infrav1.MachinePoolFinalizer)
	}
	grouped := !p.OfMachines(w.class)
	machines, err := r.machinesOf(ctx, r.live, p, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if abandoned(p, p.Spec.ExternalID) {
		if err := r.releaseInstances(ctx, machines); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.abandon(ctx, p, infrav1.MachinePoolFinalizer, p.Spec.ExternalID, w.className)
	}
	set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, deletingMessage)
	left := 0
	for i := range machines {
		if err := r.remove(ctx, &machines[i]); err != nil {
			return reconcile.Result{}, err
		}
		// Instances of a group whose Nodes have been drained go with the group.
		if !grouped || machines[i].DeletionTimestamp.IsZero() {
			left++
		}
	}
	switch {
	case left > 0:
		set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, leftMessage(grouped))
		return later(jitter(deletingInterval)), r.write(ctx, p, desired)
	case grouped:
		return r.deleteGroup(ctx, p, desired, w, machines)
	}
	return reconcile.Result{}, r.release(ctx, p, infrav1.MachinePoolFinalizer) // it had nothing but machines
}

// leftMessage says what the deletion of a pool waits for.
func leftMessage(grouped bool) string {
	if grouped {
		return "waits until the Nodes of all Machines of the pool have been drained"
	}
	return "waits until the HookgateMachines of the pool are gone"
}
