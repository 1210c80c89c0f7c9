// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/caller"
	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

const (
	clusterLabel = "cluster.x-k8s.io/cluster-name"
	upToDate     = "UpToDate"
)

// reconciler brings control planes to their version, once all extensions allow it.
type reconciler struct {
	client  client.Client
	gateway hooks.LifecycleHooksServiceClient // a *caller.Client
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	plane := &AcmeControlPlane{}
	if err := r.client.Get(ctx, req.NamespacedName, plane); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := plane.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a control plane is one
	result, err := r.upgrade(ctx, plane)
	return result, errors.Join(err, r.client.Status().Patch(ctx, plane, client.MergeFrom(before)))
}

// upgrade asks whether the upgrade of a control plane may begin, and makes it.
func (r *reconciler) upgrade(ctx context.Context, plane *AcmeControlPlane) (reconcile.Result, error) {
	from, to := plane.Status.Version, plane.Spec.Version
	if from != "" && from != to { // the first version needs no leave
		out, err := r.beforeUpgrade(ctx, plane, from, to)
		if err != nil {
			plane.say(metav1.ConditionFalse, "HookFailed", err.Error())
			if failed, ok := errors.AsType[*hook.Error](err); ok && failed.RetryAfter > 0 {
				return reconcile.Result{RequeueAfter: failed.RetryAfter}, nil
			}
			return reconcile.Result{}, err // it is tried again, later each time
		}
		if wait, why, held := caller.Hold(out); held {
			plane.say(metav1.ConditionFalse, "Held", why)
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	plane.Status.Version = to // what a provider does here takes longer
	plane.say(metav1.ConditionTrue, "Upgraded", "The control plane runs "+to)
	return reconcile.Result{}, nil
}

func (r *reconciler) beforeUpgrade(
	ctx context.Context, plane *AcmeControlPlane, from, to string,
) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	cluster.SetKind("Cluster")
	key := client.ObjectKey{Namespace: plane.Namespace, Name: plane.Labels[clusterLabel]}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return nil, fmt.Errorf("get Cluster %s: %w", key, err)
	}
	object, err := caller.Object(cluster)
	if err != nil {
		return nil, err
	}
	return r.gateway.BeforeControlPlaneUpgrade(ctx, &hooks.BeforeControlPlaneUpgradeRequest{
		Cluster: object, FromKubernetesVersion: from, ToKubernetesVersion: to,
		ControlPlaneUpgrades: []*hooks.UpgradeStepInfo{{Version: to}},
	})
}

// say sets the condition UpToDate.
func (p *AcmeControlPlane) say(status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: upToDate, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation,
	})
}
