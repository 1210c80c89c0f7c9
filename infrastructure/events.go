// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// updated lets all events pass but updates that change nothing according to changed.
func updated[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, okAfter := e.ObjectNew.(T)
		return !ok || !okAfter || changed(before, after)
	}}
}

// notStatus reports whether more than the status of an object has changed.
func notStatus(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		!reflect.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!reflect.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// clusterChanged reports whether something of a Cluster has changed that objects of its infrastructure wait for.
func clusterChanged(before, after *clusterv1.Cluster) bool {
	provisioned := func(c *clusterv1.Cluster) bool {
		return ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false)
	}
	return before.Generation != after.Generation || provisioned(before) != provisioned(after)
}

// classChanged reports whether something of a class has changed that its objects need.
func classChanged(before, after *infrav1.InfrastructureClass) bool {
	return notStatus(before, after) || saysReady(before) != saysReady(after) ||
		before.Status.Handlers != after.Status.Handlers ||
		before.Status.ProviderIDPrefix != after.Status.ProviderIDPrefix ||
		!equality.Semantic.DeepEqual(before.Status.Schemas, after.Status.Schemas)
}

// infraChanged reports whether something of a HookgateCluster has changed that its machines need.
func infraChanged(before, after *infrav1.HookgateCluster) bool {
	return before.Generation != after.Generation ||
		provisioned(before.Status.Initialization) != provisioned(after.Status.Initialization) ||
		!equality.Semantic.DeepEqual(before.Status.Outputs, after.Status.Outputs)
}

func requestOf(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// clusterToInfra returns the HookgateCluster of a Cluster.
func clusterToInfra(_ context.Context, o client.Object) []reconcile.Request {
	cluster, ok := o.(*clusterv1.Cluster)
	if !ok {
		return nil
	}
	return refersTo(cluster.Spec.InfrastructureRef, cluster.Namespace, infrav1.HookgateClusterKind)
}

// machineToInfra returns the HookgateMachine of a Machine.
func machineToInfra(_ context.Context, o client.Object) []reconcile.Request {
	machine, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return refersTo(machine.Spec.InfrastructureRef, machine.Namespace, infrav1.HookgateMachineKind)
}

// refersTo returns the object that a reference names, if it is of a kind.
func refersTo(ref clusterv1.ContractVersionedObjectReference, namespace, kind string) []reconcile.Request {
	if ref.APIGroup != infrav1.GroupVersion.Group || ref.Kind != kind {
		return nil
	}
	r := reconcile.Request{}
	r.Namespace, r.Name = namespace, ref.Name
	return []reconcile.Request{r}
}

// ofCluster returns the objects of a list type that have the label of a Cluster. Lists come from the cache: an error
// means that it stops.
func (r *base) ofCluster(ctx context.Context, list client.ObjectList, namespace, cluster string) []reconcile.Request {
	if cluster == "" {
		return nil
	}
	return r.listed(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// listed returns the objects that a list has with the given options, and none if the cache has stopped.
func (r *base) listed(ctx context.Context, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	if err := r.client.List(ctx, list, options...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fails only for what is no list
		requests = append(requests, requestOf(item.(client.Object)))
		return nil
	})
	return requests
}

// toMachines, toPools and toClusters return the objects of the Cluster that an object belongs to, or is.
func (r *base) toMachines(ctx context.Context, o client.Object) []reconcile.Request {
	return r.ofCluster(ctx, &infrav1.HookgateMachineList{}, o.GetNamespace(), clusterapi.ClusterName(o))
}

func (r *base) toPools(ctx context.Context, o client.Object) []reconcile.Request {
	return r.ofCluster(ctx, &infrav1.HookgateMachinePoolList{}, o.GetNamespace(), clusterapi.ClusterName(o))
}

func (r *base) toClusters(ctx context.Context, o client.Object) []reconcile.Request {
	return r.ofCluster(ctx, &infrav1.HookgateClusterList{}, o.GetNamespace(), clusterapi.ClusterName(o))
}

// byClass returns a function that maps a class to the objects of its HookgateClusters, and to those without one that
// have recorded it.
func (r *base) byClass(list func() client.ObjectList) func(context.Context, client.Object) []reconcile.Request {
	ofClusters := r.throughClusters(classIndex, func(ctx context.Context, c client.Object) []reconcile.Request {
		return r.ofCluster(ctx, list(), c.GetNamespace(), clusterapi.ClusterName(c))
	})
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return append(ofClusters(ctx, o), r.recorded(ctx, list(), o.GetName())...)
	}
}

// recorded returns the objects that have recorded a class.
func (r *base) recorded(ctx context.Context, list client.ObjectList, class string) []reconcile.Request {
	return r.listed(ctx, list, client.MatchingFields{classIndex: class})
}

// byIdentity returns a function that maps an identity to the objects of its HookgateClusters. Those of HookgateClusters
// that are gone are looked at when they are called about again.
func (r *base) byIdentity(
	toObjects func(context.Context, client.Object) []reconcile.Request,
) func(context.Context, client.Object) []reconcile.Request {
	return r.throughClusters(identityIndex, toObjects)
}

// throughClusters returns a function that maps an object to those of the HookgateClusters that an index has for it.
func (r *base) throughClusters(
	index string, toObjects func(context.Context, client.Object) []reconcile.Request,
) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		list := &infrav1.HookgateClusterList{}
		if err := r.client.List(ctx, list, client.MatchingFields{index: o.GetName()}); err != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, toObjects(ctx, &list.Items[i])...)
		}
		return requests
	}
}

// rotated returns a function that maps a Secret to the objects of its identities, and makes the next call read it
// again.
func (r *base) rotated(
	byIdentity func(context.Context, client.Object) []reconcile.Request,
) handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request] {
	return func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
		r.secrets.forget(client.ObjectKeyFromObject(o))
		list := &infrav1.HookgateClusterIdentityList{}
		if err := r.client.List(ctx, list); err != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if list.Items[i].Spec.CredentialsRef.Name == o.Name {
				requests = append(requests, byIdentity(ctx, &list.Items[i])...)
			}
		}
		return requests
	}
}

// itself returns the request of an object.
func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{requestOf(o)}
}

// classOf returns the class that an object of a Cluster uses or has used; nil for one that uses none.
func classOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[infrav1.ClassAnnotation]
	if c, ok := o.(*infrav1.HookgateCluster); ok {
		name = c.Spec.InfrastructureClassName
	}
	if name == "" {
		return nil
	}
	r := reconcile.Request{}
	r.Name = name
	return []reconcile.Request{r}
}

// machinePoolToInfra returns the HookgateMachinePool of a MachinePool.
func machinePoolToInfra(_ context.Context, o client.Object) []reconcile.Request {
	pool, ok := o.(*clusterv1.MachinePool)
	if !ok {
		return nil
	}
	return refersTo(pool.Spec.Template.Spec.InfrastructureRef, pool.Namespace, infrav1.HookgateMachinePoolKind)
}

// poolOf returns the HookgateMachinePool of a HookgateMachine.
func poolOf(_ context.Context, o client.Object) []reconcile.Request {
	name := clusterapi.OwnerOf(o, infrav1.GroupVersion.Group, infrav1.HookgateMachinePoolKind)
	if name == "" {
		return nil
	}
	r := reconcile.Request{}
	r.Namespace, r.Name = o.GetNamespace(), name
	return []reconcile.Request{r}
}

// memberChanged reports whether something of a HookgateMachine has changed that its pool shows.
func memberChanged(before, after *infrav1.HookgateMachine) bool {
	return notStatus(before, after) || saysReady(before) != saysReady(after) ||
		!equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses) ||
		before.Status.FailureDomain != after.Status.FailureDomain
}

// toPool returns the HookgateMachinePool of a Machine.
func (r *base) toPool(ctx context.Context, o client.Object) []reconcile.Request {
	for _, request := range machineToInfra(ctx, o) {
		m, err := get[infrav1.HookgateMachine](ctx, r.client, request.Namespace, request.Name)
		if err == nil && m != nil {
			return poolOf(ctx, m)
		}
	}
	return nil
}

// wishChanged reports whether something of a Machine has changed by which a pool chooses those that go.
func wishChanged(before, after *clusterv1.Machine) bool {
	_, marked := before.Annotations[clusterv1.DeleteMachineAnnotation]
	_, marks := after.Annotations[clusterv1.DeleteMachineAnnotation]
	return toRemediate(before) != toRemediate(after) || marked != marks ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}
