// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// conflictDelay is the time until an object is looked at again of which another writer changed something meanwhile.
const conflictDelay = 100 * time.Millisecond

// quiet is a reconciler whose conflicts are no errors: another writer was faster, and everything is decided again from
// what that wrote.
type quiet struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (q quiet) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := q.Reconciler.Reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		return later(jitter(conflictDelay)), nil
	}
	return result, err
}

// requeuer is a reconciler that looks at an object again when it has not been ready for long, so that the event that
// says so does not have to wait for the next call, which may be far off, or for a change, which may never come.
type requeuer struct {
	reconcile.Reconciler
	read func(ctx context.Context, req reconcile.Request) (object, error) // nil if it does not exist
	now  func() time.Time
}

// requeued returns r as a requeuer that reads objects of a type from the cache, which has what r has written.
func requeued[T any, P interface {
	*T
	object
}](b *base, r reconcile.Reconciler) requeuer {
	return requeuer{Reconciler: r, now: b.now, read: func(ctx context.Context, req reconcile.Request) (object, error) {
		o, err := get[T, P](ctx, b.client, req.Namespace, req.Name)
		if o == nil || err != nil {
			return nil, err
		}
		return o, nil
	}}
}

// Reconcile implements reconcile.Reconciler.
func (p requeuer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := p.Reconciler.Reconcile(ctx, req)
	if err != nil {
		return result, err
	}
	o, err := p.read(ctx, req)
	if err != nil || o == nil {
		return result, err
	}
	if d := untilNotice(o, p.now()); d > 0 && (result.RequeueAfter == 0 || d < result.RequeueAfter) {
		result.RequeueAfter = d
	}
	return result, nil
}

// untilNotice returns how long it takes until an object has not been ready for long; zero if it is ready, if it is
// paused, or if that is the case already.
func untilNotice(o object, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(o.GetConditions(), infrav1.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse ||
		meta.IsStatusConditionTrue(o.GetConditions(), infrav1.PausedCondition) {
		return 0
	}
	return max(ready.LastTransitionTime.Add(notReadyAfter).Sub(now), 0)
}
