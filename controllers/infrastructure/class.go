// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/binary"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/hookgate/hookgate/api/infrastructure/v1alpha1"
)

// classes reconciles InfrastructureClasses: it asks their extensions what they announce. A class is kept until no
// object uses it.
type classes struct {
	*base
	pace *pacer
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
	if !c.DeletionTimestamp.IsZero() {
		if released, err := r.delete(ctx, c); released || err != nil {
			return reconcile.Result{}, err
		}
	} else if !hasFinalizer(c, infrav1.ClassFinalizer) {
		after := c.DeepCopy()
		controllerutil.AddFinalizer(after, infrav1.ClassFinalizer)
		main, _, err := difference(c, after)
		if err != nil {
			return reconcile.Result{}, err
		}
		if err := r.client.Patch(ctx, after, client.RawPatch(types.MergePatchType, main)); err != nil {
			return reconcile.Result{}, fmt.Errorf("keep InfrastructureClass %s: %w", c.Name, err)
		}
		c = after
	}
	return r.discover(ctx, c)
}

// discover asks the extension what it announces, if that is due, and records it.
func (r *classes) discover(ctx context.Context, c *infrav1.InfrastructureClass) (reconcile.Result, error) {
	key, in := client.ObjectKeyFromObject(c), inputs{}
	binary.BigEndian.PutUint64(in[:], uint64(c.Generation))
	if d := r.pace.wait(key, in); d > 0 {
		return later(d), nil
	}
	desired := c.DeepCopy()
	answer, err := r.calls.Discover(ctx, c.Name, c.Spec.ExtensionRef.Name)
	if err != nil {
		after, err := r.failure(r.pace, desired, key, in, err)
		if err != nil {
			return reconcile.Result{}, err
		}
		if desired.Status.ProviderIDPrefix == "" && len(desired.GetConditions()) > 0 {
			set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ClassNotReadyReason,
				"the extension has not been discovered yet: see the condition Synced")
		}
		return after, r.record(ctx, r.pace, c, desired)
	}
	decideClass(desired, answer, r.schemas)
	return later(r.pace.answered(key, in, jitter(classInterval))), r.record(ctx, r.pace, c, desired)
}

// delete releases a class that no object uses, and reports whether it did, or there was nothing to release.
func (r *classes) delete(ctx context.Context, c *infrav1.InfrastructureClass) (released bool, err error) {
	if !hasFinalizer(c, infrav1.ClassFinalizer) {
		return true, nil
	}
	used, err := r.used(ctx, c.Name)
	if err != nil || used {
		return false, err
	}
	return true, r.release(ctx, c, infrav1.ClassFinalizer)
}

// used reports whether an object of any namespace uses a class. It reads past the cache, which may have one namespace.
func (r *classes) used(ctx context.Context, class string) (bool, error) {
	clusters := &infrav1.HookgateClusterList{}
	if err := r.live.List(ctx, clusters); err != nil {
		return false, fmt.Errorf("list HookgateClusters: %w", err)
	}
	for i := range clusters.Items {
		if clusters.Items[i].Spec.InfrastructureClassName == class {
			return true, nil
		}
	}
	machines := &infrav1.HookgateMachineList{}
	if err := r.live.List(ctx, machines); err != nil {
		return false, fmt.Errorf("list HookgateMachines: %w", err)
	}
	for i := range machines.Items {
		if machines.Items[i].Annotations[infrav1.ClassAnnotation] == class {
			return true, nil
		}
	}
	pools := &infrav1.HookgateMachinePoolList{}
	if err := r.live.List(ctx, pools); err != nil {
		return false, fmt.Errorf("list HookgateMachinePools: %w", err)
	}
	for i := range pools.Items {
		if pools.Items[i].Annotations[infrav1.ClassAnnotation] == class {
			return true, nil
		}
	}
	return false, nil
}
