// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// clusters reconciles HookgateClusters.
type clusters struct {
	*base
	pace *scheduler
}

// Reconcile implements reconcile.Reconciler.
func (r *clusters) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &infrav1.HookgateCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, c); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(c) || unmanaged(c) {
		return reconcile.Result{}, nil
	}
	w, err := r.observeCluster(ctx, c)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := c.DeepCopy()
	cause := pausedBy(w.cluster, c)
	setPaused(desired, cause)
	switch {
	case cause != "":
		r.pace.forget(req.NamespacedName) // what happens meanwhile is looked at afterwards
		allowMove(desired)
		return reconcile.Result{}, r.write(ctx, c, desired)
	case !c.DeletionTimestamp.IsZero():
		return r.delete(ctx, c, desired, w)
	}
	return r.reconcile(ctx, c, desired, w)
}

// reconcile brings a cluster that should exist closer to it.
func (r *clusters) reconcile(
	ctx context.Context, c, desired *infrav1.HookgateCluster, w *scope,
) (reconcile.Result, error) {
	b, err := r.duplicate(ctx, c, c.Spec.ExternalID, &infrav1.HookgateClusterList{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(c.Status.Initialization))
		return later(jitter(poolInterval)), r.write(ctx, c, desired)
	}
	handler := w.handlers().ReconcileCluster
	if b := clusterBlock(c, w, handler); b != nil {
		b.apply(desired, provisioned(c.Status.Initialization))
		return reconcile.Result{}, r.write(ctx, c, desired)
	}
	req, b, err := r.request(ctx, c, desired, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, provisioned(c.Status.Initialization))
		return later(jitter(provisioningInterval)), r.write(ctx, c, desired)
	}
	if c, err = identify(ctx, r.base, c, infrav1.ClusterFinalizer,
		func(c *infrav1.HookgateCluster) *string { return &c.Spec.ExternalID },
		blockMove(nil, provisioned(c.Status.Initialization))); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired = continued(c, desired)
	w.infra, w.clusterExternalID = c, c.Spec.ExternalID
	req.Subject.ExternalId, req.Subject.ClusterExternalId = c.Spec.ExternalID, c.Spec.ExternalID
	return r.call(ctx, r.pace, c, desired, "ReconcileCluster", req, func(in inputs) (reconcile.Result, error) {
		return r.ask(ctx, c, desired, w, handler, req, in)
	})
}

// clusterBlock returns why the extension must not be called about a cluster that should exist; nil if it may.
func clusterBlock(c *infrav1.HookgateCluster, w *scope, handler infrav1.HandlerName) *block {
	if w.cluster == nil {
		return waits(infrav1.WaitingForOwnerReason, "Cluster API has not set the Cluster as the owner yet")
	}
	if b := w.reachable(handler, c.Spec.ExternalID != ""); b != nil {
		return b
	}
	return w.usable(c.Namespace)
}

// request returns the request for a cluster, without objects of Cluster API, or why there can be none.
func (r *clusters) request(
	ctx context.Context, c, desired *infrav1.HookgateCluster, w *scope,
) (*infrahooksv1alpha1.ReconcileClusterRequest, *block, error) {
	resolved, b := r.resolve(ctx, desired, w.class, c.Spec.Parameters)
	if b != nil {
		return nil, b, nil
	}
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if b != nil || err != nil {
		return nil, b, err
	}
	if err := r.carryCredentials(ctx, desired, w); err != nil {
		return nil, nil, err
	}
	req := &infrahooksv1alpha1.ReconcileClusterRequest{
		Subject: w.subject(c, w.clusterName, c.Spec.ExternalID, resolved, credentials),
	}
	if e := endpointOf(c, w.settled()); e.Host != "" {
		req.ControlPlaneEndpoint = &infrahooksv1alpha1.Endpoint{Host: e.Host, Port: e.Port}
	}
	return req, nil, nil
}

// carryCredentials makes clusterctl move take along the Secret that a HookgateCluster names, and records whether it
// does. That of a class stays with the class.
func (r *clusters) carryCredentials(ctx context.Context, desired *infrav1.HookgateCluster, w *scope) error {
	if desired.Spec.CredentialsRef == nil || w.credentials == nil {
		meta.RemoveStatusCondition(&desired.Status.Conditions, infrav1.CredentialsMovableCondition)
		return nil
	}
	stays, err := r.secrets.carry(ctx, *w.credentials)
	if err != nil {
		return err
	}
	setMovable(desired, stays)
	return nil
}

// settled returns the endpoint of the Cluster, which the user or the control plane provider may have set.
func (w *scope) settled() clusterv1.APIEndpoint {
	if w.cluster == nil {
		return clusterv1.APIEndpoint{}
	}
	return w.cluster.Spec.ControlPlaneEndpoint
}

// ask makes the call, and records what it says on desired. in are the inputs of the request.
func (r *clusters) ask(
	ctx context.Context, c, desired *infrav1.HookgateCluster, w *scope, handler infrav1.HandlerName,
	req *infrahooksv1alpha1.ReconcileClusterRequest, in inputs,
) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(c)
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	answer, err := r.calls.ReconcileCluster(ctx, w.target(handler), req)
	if err != nil {
		return r.failure(r.pace, desired, key, in, err)
	}
	usual := decideCluster(desired, w.settled(), answer)
	if provisioned(desired.Status.Initialization) {
		allowMove(desired)
	}
	if e := desired.Spec.ControlPlaneEndpoint; e.Host != "" && req.GetControlPlaneEndpoint() == nil {
		// The next request has the endpoint, which the extension has just answered.
		req.ControlPlaneEndpoint = &infrahooksv1alpha1.Endpoint{Host: e.Host, Port: e.Port}
		req.Subject.Cluster = nil
		in = digest("ReconcileCluster", req)
	}
	return later(r.pace.answered(key, in, interval(usual, retryAfter(answer)))), nil
}

// delete brings a cluster that should be gone closer to it.
func (r *clusters) delete(
	ctx context.Context, c, desired *infrav1.HookgateCluster, w *scope,
) (reconcile.Result, error) {
	if !hasFinalizer(c, infrav1.ClusterFinalizer) {
		return reconcile.Result{}, nil
	}
	if c.Spec.ExternalID == "" { // nothing was ever called
		return reconcile.Result{}, r.release(ctx, c, infrav1.ClusterFinalizer)
	}
	if b, err := r.duplicate(ctx, c, c.Spec.ExternalID, &infrav1.HookgateClusterList{}); err != nil {
		return reconcile.Result{}, err
	} else if b != nil {
		return reconcile.Result{}, r.releaseDuplicate(ctx, c, infrav1.ClusterFinalizer)
	}
	if abandoned(c, c.Spec.ExternalID) {
		return reconcile.Result{}, r.abandon(ctx, c, infrav1.ClusterFinalizer, c.Spec.ExternalID, w.className)
	}
	set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, deletingMessage)
	left, err := r.left(ctx, c.Namespace, w.clusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left != "" {
		set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason,
			fmt.Sprintf("waits until the %s of the Cluster are gone", left))
		return later(jitter(deletingInterval)), r.write(ctx, c, desired)
	}
	handler := w.handlers().DeleteCluster
	if b := w.deletable(handler, c.Namespace, provisioned(c.Status.Initialization)); b != nil {
		b.apply(desired, true)
		return reconcile.Result{}, r.write(ctx, c, desired)
	}
	credentials, b, err := r.secrets.credentials(ctx, w.credentials)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b != nil {
		b.apply(desired, true)
		return later(jitter(deletingInterval)), r.write(ctx, c, desired)
	}
	req := &infrahooksv1alpha1.DeleteClusterRequest{Subject: w.subject(c, w.clusterName, c.Spec.ExternalID,
		r.lenient(ctx, c, w.class, c.Spec.Parameters), credentials)}
	return r.callDelete(ctx, c, desired, w, handler, req)
}

// callDelete makes the call if it is due, and releases the cluster when it is gone.
func (r *clusters) callDelete(
	ctx context.Context, c, desired *infrav1.HookgateCluster, w *scope, handler infrav1.HandlerName,
	req *infrahooksv1alpha1.DeleteClusterRequest,
) (reconcile.Result, error) {
	key, in := client.ObjectKeyFromObject(c), digest("DeleteCluster", req)
	if d := r.pace.wait(key, in); d > 0 {
		return later(d), r.write(ctx, c, desired)
	}
	if err := w.addObjects(req.GetSubject()); err != nil {
		return reconcile.Result{}, err
	}
	answer, err := r.calls.DeleteCluster(ctx, w.target(handler), req)
	if err != nil {
		result, err := r.failure(r.pace, desired, key, in, err)
		if err != nil {
			return result, err
		}
		return result, r.record(ctx, r.pace, c, desired)
	}
	if answer.GetState() == infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE {
		r.pace.forget(key)
		return reconcile.Result{}, r.release(ctx, c, infrav1.ClusterFinalizer)
	}
	decideDeleting(desired, answer.GetMessage())
	return later(r.pace.answered(key, in, interval(deletingInterval, retryAfter(answer)))),
		r.record(ctx, r.pace, c, desired)
}

// left returns which kinds still have objects of a Cluster, which use its infrastructure.
func (r *clusters) left(ctx context.Context, namespace, cluster string) (string, error) {
	if cluster == "" {
		return "", nil
	}
	of := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}}
	pools := &infrav1.HookgateMachinePoolList{}
	if err := r.client.List(ctx, pools, of...); err != nil {
		return "", fmt.Errorf("list HookgateMachinePools: %w", err)
	}
	if len(pools.Items) > 0 {
		return infrav1.HookgateMachinePoolKind + "s", nil
	}
	list := &infrav1.HookgateMachineList{}
	if err := r.client.List(ctx, list, of...); err != nil {
		return "", fmt.Errorf("list HookgateMachines: %w", err)
	}
	if len(list.Items) > 0 {
		return infrav1.HookgateMachineKind + "s", nil
	}
	return "", nil
}
