// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// goneClusters calls AfterClusterDelete for Clusters that were remembered and are gone.
type goneClusters struct{ *clusterEnds }

func (e *clusterEnds) setUpGone(mgr manager.Manager) error {
	g := goneClusters{e}
	return builder.ControllerManagedBy(mgr).Named("gone-clusters").
		For(&v1alpha1.ClusterRecord{}, builder.WithPredicates(predicate.NewPredicateFuncs(e.isOwn))).
		Watches(&clusterv1.Cluster{}, handler.Funcs{
			UpdateFunc: func(_ context.Context, u event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				if u.ObjectOld.GetUID() != u.ObjectNew.GetUID() { // the watch has missed the end of the first
					q.Add(e.endOf(u.ObjectOld))
				}
			},
			DeleteFunc: func(_ context.Context, d event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				if !d.DeleteStateUnknown {
					_, moved := d.Object.GetAnnotations()[DeleteForMoveAnnotation]
					e.mu.Lock()
					e.ended[d.Object.GetUID()] = moved
					e.mu.Unlock()
				}
				q.Add(e.endOf(d.Object))
			},
		}).
		WatchesRawSource(e.sweep(func(ctx context.Context, changed bool) ([]reconcile.Request, error) {
			list := &v1alpha1.ClusterRecordList{}
			err := e.client.List(ctx, list, client.UnsafeDisableDeepCopy, client.InNamespace(e.config.LeaderElection.Namespace))
			var due []v1alpha1.ClusterRecord
			for i := range list.Items {
				// What has failed waits for its time, unless other handlers may be there.
				if d := list.Items[i].Spec.AfterDelete; d != nil && (changed || d.GoneSince.IsZero()) {
					due = append(due, list.Items[i])
				}
			}
			return requestsFor(due, err)
		})).
		WithOptions(e.options()).Complete(quiet{g})
}

// endOf returns the request for the record of a Cluster.
func (e *clusterEnds) endOf(c client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{
		Namespace: e.config.LeaderElection.Namespace, Name: endName(c.GetUID()),
	}}
}

// isOwn reports whether an object is the record of a Cluster that these controllers watch.
func (e *clusterEnds) isOwn(o client.Object) bool {
	r, ok := o.(*v1alpha1.ClusterRecord)
	if !ok || r.Namespace != e.config.LeaderElection.Namespace || r.Spec.AfterDelete == nil {
		return false
	}
	d := r.Spec.AfterDelete
	return d.Namespace != "" && r.Name == endName(types.UID(d.UID)) &&
		(e.config.Namespace == "" || e.config.Namespace == d.Namespace) &&
		(e.config.WatchFilter == "" || e.config.WatchFilter == d.Labels[clusterv1.WatchLabel])
}

// The states and the results that metrics tell apart.
const (
	living, gone           = "living", "gone"
	told, moved, forgotten = "told", "moved", "forgotten"
)

// Reconcile implements reconcile.Reconciler for the record of a Cluster.
func (g goneClusters) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r := &v1alpha1.ClusterRecord{}
	if err := g.client.Get(ctx, req.NamespacedName, r); err != nil || !g.isOwn(r) {
		if apierrors.IsNotFound(err) {
			g.metrics.gone(req.NamespacedName)
			g.forget(types.UID(strings.TrimPrefix(req.Name, endPrefix)))
		}
		return reconcile.Result{}, err
	}
	if r.Spec.AfterDelete.GoneSince.IsZero() {
		g.metrics.hold(req.NamespacedName, living)
		exists, err := g.exists(ctx, r)
		if err != nil || exists {
			return reconcile.Result{}, err
		}
		switch {
		case g.moved(r):
			return g.end(ctx, r, moved)
		case len(r.OwnerReferences) == 0:
			// It comes from a backup, and its Cluster has another UID now, if that was restored, too.
			return g.end(ctx, r, forgotten)
		}
		r.Spec.AfterDelete.GoneSince = metav1.NewTime(g.now())
		return reconcile.Result{}, g.client.Update(ctx, r) // whose event is next
	}
	g.metrics.hold(req.NamespacedName, gone)
	return g.tell(ctx, r)
}

// exists reports whether the Cluster of a record exists. A cache that is behind does not decide that one is gone.
func (g goneClusters) exists(ctx context.Context, r *v1alpha1.ClusterRecord) (bool, error) {
	d := r.Spec.AfterDelete
	c, key := &clusterv1.Cluster{}, client.ObjectKey{Namespace: d.Namespace, Name: r.Spec.ClusterName}
	if err := g.client.Get(ctx, key, c); err == nil && string(c.UID) == d.UID {
		return true, nil
	}
	found, err := owner.Find(ctx, g.live, key)
	return found != nil && string(found.UID) == d.UID, err
}

// moved reports whether clusterctl has moved a Cluster that is gone. If its end was not watched, the record decides:
// clusterctl waits until that says that the Cluster may move.
func (g goneClusters) moved(r *v1alpha1.ClusterRecord) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if moved, watched := g.ended[types.UID(r.Spec.AfterDelete.UID)]; watched {
		return moved
	}
	return ptr.Deref(r.Spec.AfterDelete.MayMove, false)
}

// forget forgets how the end of a Cluster was watched.
func (g goneClusters) forget(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ended, uid)
}

// tell calls AfterClusterDelete.
func (g goneClusters) tell(ctx context.Context, r *v1alpha1.ClusterRecord) (reconcile.Result, error) {
	since, now := r.Spec.AfterDelete.GoneSince.Time, g.now()
	request, err := requestOf(r)
	if err != nil {
		return reconcile.Result{}, err
	}
	names, err := g.config.Hooks.Targets(ctx, g.hook, request)
	if err == nil && len(names) == 0 {
		if now.Sub(since) > limits.ClusterEndUnmatched {
			return g.end(ctx, r, forgotten)
		}
		return again(since, now, limits.ClusterEndRetry), nil
	}
	var answer proto.Message
	var holders []string
	if err == nil {
		answer, holders, err = g.config.Hooks.Call(ctx, g.hook, request)
	}
	if _, refused := catalog.FailureOf(answer); err == nil && !refused {
		return g.end(ctx, r, told)
	}
	g.warn(r, g.hook, "Failed", said(answer, holders, err))
	return again(since, now, limits.ClusterEndRetry), nil
}

// end deletes the record of a Cluster whose handlers have been called, or for which none is to be called.
func (g goneClusters) end(ctx context.Context, r *v1alpha1.ClusterRecord, result string) (reconcile.Result, error) {
	err := g.client.Delete(ctx, r, client.Preconditions{UID: &r.UID})
	if err != nil {
		return reconcile.Result{}, err
	}
	g.metrics.ended.WithLabelValues(result).Inc()
	g.config.Logger.Info("a Cluster is gone", "namespace", r.Spec.AfterDelete.Namespace, "cluster", r.Spec.ClusterName,
		"uid", r.Spec.AfterDelete.UID, "result", result)
	return reconcile.Result{}, nil
}

// requestOf returns the request for the Cluster of a record.
func requestOf(r *v1alpha1.ClusterRecord) (*machinesv1alpha1.AfterClusterDeleteRequest, error) {
	d := r.Spec.AfterDelete
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: r.Spec.ClusterName, UID: types.UID(d.UID), Labels: d.Labels,
		CreationTimestamp: d.Created,
	}}
	c.Spec.Topology.ClassRef.Name, c.Spec.Topology.ClassRef.Namespace = d.Class, d.ClassNamespace
	c.Spec.Topology.Version = d.Version
	raw, err := rawOf(c, "Cluster")
	if err != nil {
		return nil, err
	}
	return &machinesv1alpha1.AfterClusterDeleteRequest{Cluster: raw, NamespaceLabels: d.NamespaceLabels}, nil
}
