// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/binary"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// classes reconciles InfrastructureClasses: it asks their extensions what they announce. A class is kept until no
// object uses it.
type classes struct {
	*base
	pace *scheduler
}

// Reconcile implements reconcile.Reconciler.
func (r *classes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &infrav1.InfrastructureClass{}
	if err := r.client.Get(ctx, req.NamespacedName, c); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(c) {
		return reconcile.Result{}, nil
	}
	desired := c.DeepCopy()
	cause := pausedBy(nil, c)
	setPaused(desired, cause)
	switch {
	case cause != "":
		r.pace.forget(req.NamespacedName) // what happens meanwhile is looked at afterwards
		return reconcile.Result{}, r.write(ctx, c, desired)
	case !c.DeletionTimestamp.IsZero():
		return r.delete(ctx, c, desired)
	case !hasFinalizer(c, infrav1.ClassFinalizer):
		after := c.DeepCopy()
		controllerutil.AddFinalizer(after, infrav1.ClassFinalizer)
		main, _, err := difference(c, after)
		if err != nil {
			return reconcile.Result{}, err
		}
		if err := r.client.Patch(ctx, after, client.RawPatch(types.MergePatchType, main)); err != nil {
			return reconcile.Result{}, fmt.Errorf("keep InfrastructureClass %s: %w", c.Name, err)
		}
		c, desired = after, continued(after, desired)
	}
	return r.discover(ctx, c, desired, "")
}

// discover asks the extension what it announces, if that is due, and records it on desired. user names an object for
// which a class is kept that is being deleted.
func (r *classes) discover(
	ctx context.Context, c, desired *infrav1.InfrastructureClass, user string,
) (reconcile.Result, error) {
	key, in := client.ObjectKeyFromObject(c), inputs{}
	binary.BigEndian.PutUint64(in[:], uint64(c.Generation))
	after := later(r.pace.wait(key, in))
	if after.RequeueAfter <= 0 {
		answer, err := r.calls.Discover(ctx, c.Name, c.Spec.ExtensionRef.Name)
		if err == nil {
			decideClass(desired, answer, r.schemas)
			after = later(r.pace.answered(key, in, jitter(classInterval)))
		} else if after, err = r.failure(r.pace, desired, key, in, err); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch synced := meta.FindStatusCondition(desired.Status.Conditions, infrav1.SyncedCondition); {
	case user != "":
		set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason,
			"the class is being deleted, but stays while objects use it, such as "+user)
	case synced != nil && desired.Status.ProviderIDPrefix == "":
		set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ClassNotReadyReason,
			"the extension has not been discovered yet: see the condition Synced")
	}
	return after, r.record(ctx, r.pace, c, desired)
}

// delete releases a class that no object uses. Until then, it is kept up to date: deletions need it.
func (r *classes) delete(ctx context.Context, c, desired *infrav1.InfrastructureClass) (reconcile.Result, error) {
	if !hasFinalizer(c, infrav1.ClassFinalizer) {
		return reconcile.Result{}, nil
	}
	user, err := r.user(ctx, infrav1.ClassAnnotation, c.Name, func(o *infrav1.HookgateCluster) string {
		return o.Spec.InfrastructureClassName
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	if user == "" {
		return reconcile.Result{}, r.release(ctx, c, infrav1.ClassFinalizer)
	}
	return r.discover(ctx, c, desired, user)
}

// user names an object of any namespace that uses something, which its annotation or its HookgateCluster names; it is
// empty if there is none. It reads past the cache, which may have one namespace.
func (r *base) user(
	ctx context.Context, annotation, name string, used func(*infrav1.HookgateCluster) string,
) (string, error) {
	clusters := &infrav1.HookgateClusterList{}
	if err := r.live.List(ctx, clusters); err != nil {
		return "", fmt.Errorf("list HookgateClusters: %w", err)
	}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; used(c) == name {
			return named(infrav1.HookgateClusterKind, c), nil
		}
	}
	machines := &infrav1.HookgateMachineList{}
	if err := r.live.List(ctx, machines); err != nil {
		return "", fmt.Errorf("list HookgateMachines: %w", err)
	}
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Annotations[annotation] == name {
			return named(infrav1.HookgateMachineKind, m), nil
		}
	}
	pools := &infrav1.HookgateMachinePoolList{}
	if err := r.live.List(ctx, pools); err != nil {
		return "", fmt.Errorf("list HookgateMachinePools: %w", err)
	}
	for i := range pools.Items {
		if p := &pools.Items[i]; p.Annotations[annotation] == name {
			return named(infrav1.HookgateMachinePoolKind, p), nil
		}
	}
	return "", nil
}

func named(kind string, o client.Object) string {
	return kind + " " + client.ObjectKeyFromObject(o).String()
}
