// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// The annotations of clusterctl, whose package is in the main module of Cluster API.
const (
	// DeleteForMoveAnnotation is on an object that clusterctl has moved, before it deletes it here.
	DeleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"
	// BlockMoveAnnotation makes clusterctl wait before it moves the Cluster that an object belongs to.
	BlockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"
)

// AfterDeleteLabel is on the ClusterRecords for AfterClusterDelete.
const AfterDeleteLabel = "hookgate.dev/after-cluster-delete"

// endPrefix begins the names of those of Clusters, by UID, which are in the namespace of the gateway.
const endPrefix = "after-delete."

// guardName returns the name of the record beside a Cluster that makes clusterctl wait.
func guardName(cluster string) string { return owner.RecordName("before-move." + cluster) }

// clusterEnds remembers the Clusters that handlers of AfterClusterDelete match while they exist. Nothing of this keeps
// a Cluster or its namespace from ending: what has to outlive them is beside the gateway, and has no finalizer.
//
// A Cluster that clusterctl moves disappears as one that is deleted does. While the controllers watch, an annotation
// tells the two apart. For the time in which they do not, a second record beside the Cluster makes clusterctl wait,
// from the moment it has paused the Cluster until the first record says that this one may move.
type clusterEnds struct {
	*base
	hook *catalog.Hook

	mu    sync.Mutex
	ended map[types.UID]bool // the Clusters whose end was watched, until it is recorded; true if clusterctl moved them
}

func (b *base) setUpClusters(mgr manager.Manager) error {
	h, err := b.hook(&machinesv1alpha1.AfterClusterDeleteRequest{})
	if err != nil {
		return err
	}
	e := &clusterEnds{base: b, hook: h, ended: map[types.UID]bool{}}
	err = builder.ControllerManagedBy(mgr).Named("living-clusters").
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		WatchesRawSource(e.sweep(func(ctx context.Context, _ bool) ([]reconcile.Request, error) {
			list := &clusterv1.ClusterList{}
			err := e.client.List(ctx, list, client.UnsafeDisableDeepCopy)
			return requestsFor(list.Items, err)
		})).
		WithOptions(b.options()).Complete(quiet{e})
	if err != nil {
		return err
	}
	return e.setUpGone(mgr)
}

// Reconcile implements reconcile.Reconciler for a Cluster that exists.
func (e *clusterEnds) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &clusterv1.Cluster{}
	if err := e.client.Get(ctx, req.NamespacedName, c); err != nil || !e.watched(c) {
		return reconcile.Result{}, err
	}
	wanted, err := e.newRecord(ctx, c)
	if err != nil {
		return reconcile.Result{}, err
	}
	record := &v1alpha1.ClusterRecord{}
	err = e.client.Get(ctx, client.ObjectKeyFromObject(wanted), record)
	if apierrors.IsNotFound(err) && !e.isFor(ctx, wanted) {
		return reconcile.Result{}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	// The Cluster may move only while the record says so.
	if ptr.Deref(wanted.Spec.AfterDelete.MayMove, false) {
		if err := e.store(ctx, record, wanted); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, e.guard(ctx, c, false)
	}
	if err := e.guard(ctx, c, true); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, e.store(ctx, record, wanted)
}

// isFor reports whether a Cluster without a record is to have one.
func (e *clusterEnds) isFor(ctx context.Context, wanted *v1alpha1.ClusterRecord) bool {
	request, err := requestOf(wanted)
	var names []string
	if err == nil {
		names, err = e.config.Hooks.Targets(ctx, e.hook, request)
	}
	switch {
	case err != nil:
		e.metrics.unknown.WithLabelValues("unknown").Inc()
		e.config.Logger.Debug("it is not known which handlers a Cluster has", "hook", e.hook.Hook,
			"namespace", wanted.Spec.AfterDelete.Namespace, "cluster", wanted.Spec.ClusterName, "error", err)
		return false
	case len(names) == 0:
		return false
	case e.metrics.count() >= limits.ClusterEndRecords:
		e.metrics.unknown.WithLabelValues("limit").Inc()
		e.config.Logger.Error("AfterClusterDelete will not be called for a Cluster: the gateway already remembers the "+
			"maximum number of Clusters", "namespace", wanted.Spec.AfterDelete.Namespace, "cluster", wanted.Spec.ClusterName,
			"limit", limits.ClusterEndRecords)
		return false
	}
	return true
}

// endName returns the name of the record of a Cluster.
func endName(uid types.UID) string { return endPrefix + string(uid) }

// newRecord returns what is kept of a Cluster. The namespace of the gateway owns it: in a backup that is restored in
// another management cluster, it says nothing about the Clusters there.
func (e *clusterEnds) newRecord(ctx context.Context, c *clusterv1.Cluster) (*v1alpha1.ClusterRecord, error) {
	own, err := e.namespace(ctx, e.config.LeaderElection.Namespace)
	if err != nil {
		return nil, err
	}
	of, err := e.namespace(ctx, c.Namespace)
	if err != nil {
		return nil, err
	}
	_, annotated := c.Annotations[DeleteForMoveAnnotation]
	kept := &v1alpha1.ClusterAfterDelete{
		UID: string(c.UID), Namespace: c.Namespace, Created: c.CreationTimestamp, Labels: firstLabels(c.Labels),
		NamespaceLabels: firstLabels(of.Labels), Version: c.Spec.Topology.Version,
		Class: c.Spec.Topology.ClassRef.Name, ClassNamespace: c.Spec.Topology.ClassRef.Namespace,
	}
	if annotated || ptr.Deref(c.Spec.Paused, false) {
		kept.MayMove = new(true)
	}
	r := &v1alpha1.ClusterRecord{Spec: v1alpha1.ClusterRecordSpec{ClusterName: c.Name, AfterDelete: kept}}
	r.Namespace, r.Name = own.Name, endName(c.UID)
	r.Labels = map[string]string{AfterDeleteLabel: ""}
	r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: own.Name, UID: own.UID}}
	return r, nil
}

// namespace returns the metadata of a namespace.
func (e *clusterEnds) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := e.client.Get(ctx, client.ObjectKey{Name: name}, o); err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return o, nil
}

// firstLabels returns as many labels as are kept.
func firstLabels(all map[string]string) map[string]string {
	if len(all) <= limits.ClusterEndLabels {
		return all
	}
	kept := make(map[string]string, limits.ClusterEndLabels)
	for _, name := range slices.Sorted(maps.Keys(all))[:limits.ClusterEndLabels] {
		kept[name] = all[name]
	}
	return kept
}

// store writes a record as it is to be. record is what is known of the one that exists; it has no UID if none does.
func (e *clusterEnds) store(ctx context.Context, record, wanted *v1alpha1.ClusterRecord) error {
	if record.UID == "" {
		return client.IgnoreAlreadyExists(e.client.Create(ctx, wanted))
	}
	kept, now := *record.Spec.AfterDelete, *wanted.Spec.AfterDelete
	if kept.Created.Equal(&now.Created) {
		kept.Created = now.Created // times in a cache may be in another zone
	}
	if reflect.DeepEqual(kept, now) && reflect.DeepEqual(record.OwnerReferences, wanted.OwnerReferences) {
		return nil
	}
	wanted.ResourceVersion = record.ResourceVersion
	return e.client.Update(ctx, wanted)
}

// guard makes clusterctl wait with the move of a Cluster, or lets it go on.
func (e *clusterEnds) guard(ctx context.Context, c *clusterv1.Cluster, block bool) error {
	guard := &v1alpha1.ClusterRecord{}
	err := e.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: guardName(c.Name)}, guard)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	_, blocks := guard.Annotations[BlockMoveAnnotation]
	switch {
	case guard.UID == "" && !block:
		return nil
	case guard.UID != "" && blocks == block && guard.Spec.AfterDelete != nil &&
		guard.Spec.AfterDelete.UID == string(c.UID) && metav1.IsControlledBy(guard, c):
		return nil
	}
	if block {
		metav1.SetMetaDataAnnotation(&guard.ObjectMeta, BlockMoveAnnotation, hookgate)
	} else {
		delete(guard.Annotations, BlockMoveAnnotation)
	}
	metav1.SetMetaDataLabel(&guard.ObjectMeta, AfterDeleteLabel, "")
	guard.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID, Controller: new(true),
	}}
	guard.Spec = v1alpha1.ClusterRecordSpec{
		ClusterName: c.Name, AfterDelete: &v1alpha1.ClusterAfterDelete{UID: string(c.UID)},
	}
	if guard.UID != "" {
		return e.client.Update(ctx, guard)
	}
	guard.Namespace, guard.Name = c.Namespace, guardName(c.Name)
	err = e.client.Create(ctx, guard)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // what is deleted with its namespace does not move
	}
	return client.IgnoreAlreadyExists(err)
}
