// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// scope is what surrounds an object. What does not exist is nil.
type scope struct {
	cluster     *clusterv1.Cluster
	infra       *infrav1.HookgateCluster // of the cluster
	class       *infrav1.InfrastructureClass
	identity    *infrav1.HookgateClusterIdentity
	machine     *clusterv1.Machine           // of a HookgateMachine
	pool        *infrav1.HookgateMachinePool // of a HookgateMachine that belongs to one
	machinePool *clusterv1.MachinePool       // of a HookgateMachinePool, or of pool

	// className, clusterName and clusterExternalID outlive the cluster and infra. identityName is empty without one.
	className, clusterName, clusterExternalID, identityName string
	// namespaceAllowed and identityAllowed report whether the class and the identity may be used in the namespace of the
	// object.
	namespaceAllowed, identityAllowed bool
	// credentials names the Secret of the credentials; nil for none.
	credentials *types.NamespacedName
	// foreign names a Secret in another namespace that a HookgateCluster must not use.
	foreign string
}

// get reads an object, and returns nil if the name is empty or the object does not exist.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, namespace, name string) (P, error) {
	if name == "" {
		return nil, nil
	}
	o := P(new(T))
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %T: %w", o, err)
	}
	return o, nil
}

// observeCluster returns the scope of a HookgateCluster.
func (r *base) observeCluster(ctx context.Context, c *infrav1.HookgateCluster) (*scope, error) {
	w := &scope{
		infra: c, className: c.Spec.InfrastructureClassName, clusterExternalID: c.Spec.ExternalID,
		clusterName: clusterapi.OwnerOf(c, clusterv1.GroupVersion.Group, clusterv1.ClusterKind),
	}
	var err error
	if w.cluster, err = get[clusterv1.Cluster](ctx, r.client, c.Namespace, w.clusterName); err != nil {
		return nil, err
	}
	if w.clusterName == "" {
		w.clusterName = c.Labels[clusterv1.ClusterNameLabel]
	}
	return w, r.observeClass(ctx, w, c)
}

// observeMachine returns the scope of a HookgateMachine.
func (r *base) observeMachine(ctx context.Context, m *infrav1.HookgateMachine) (*scope, error) {
	w := &scope{clusterName: m.Labels[clusterv1.ClusterNameLabel]}
	var err error
	owner := clusterapi.OwnerOf(m, clusterv1.GroupVersion.Group, "Machine")
	if w.machine, err = get[clusterv1.Machine](ctx, r.client, m.Namespace, owner); err != nil {
		return nil, err
	}
	if w.machine != nil && w.clusterName == "" {
		w.clusterName = w.machine.Spec.ClusterName
	}
	owner = clusterapi.OwnerOf(m, infrav1.GroupVersion.Group, infrav1.HookgateMachinePoolKind)
	if w.pool, err = get[infrav1.HookgateMachinePool](ctx, r.client, m.Namespace, owner); err != nil {
		return nil, err
	}
	if w.pool != nil {
		owner = clusterapi.OwnerOf(w.pool, clusterv1.GroupVersion.Group, "MachinePool")
		if w.machinePool, err = get[clusterv1.MachinePool](ctx, r.client, m.Namespace, owner); err != nil {
			return nil, err
		}
	}
	return w, r.observeAround(ctx, w, m)
}

// observePool returns the scope of a HookgateMachinePool.
func (r *base) observePool(ctx context.Context, p *infrav1.HookgateMachinePool) (*scope, error) {
	w := &scope{clusterName: p.Labels[clusterv1.ClusterNameLabel]}
	var err error
	owner := clusterapi.OwnerOf(p, clusterv1.GroupVersion.Group, "MachinePool")
	if w.machinePool, err = get[clusterv1.MachinePool](ctx, r.client, p.Namespace, owner); err != nil {
		return nil, err
	}
	if w.machinePool != nil && w.clusterName == "" {
		w.clusterName = w.machinePool.Spec.ClusterName
	}
	return w, r.observeAround(ctx, w, p)
}

// observeAround observes the cluster of a machine or pool, and its class.
func (r *base) observeAround(ctx context.Context, w *scope, o client.Object) error {
	var err error
	if w.cluster, err = get[clusterv1.Cluster](ctx, r.client, o.GetNamespace(), w.clusterName); err != nil {
		return err
	}
	if w.infra, err = r.infraOf(ctx, w.cluster, o.GetNamespace(), w.clusterName); err != nil {
		return err
	}
	if w.infra != nil {
		w.className, w.clusterExternalID = w.infra.Spec.InfrastructureClassName, w.infra.Spec.ExternalID
	} else {
		w.className = o.GetAnnotations()[infrav1.ClassAnnotation]
		w.clusterExternalID = o.GetAnnotations()[infrav1.ClusterExternalIDAnnotation]
	}
	return r.observeClass(ctx, w, o)
}

// infraOf returns the HookgateCluster of a Cluster, also of one that is gone.
func (r *base) infraOf(
	ctx context.Context, cluster *clusterv1.Cluster, namespace, name string,
) (*infrav1.HookgateCluster, error) {
	if cluster != nil {
		ref := cluster.Spec.InfrastructureRef
		if ref.APIGroup != infrav1.GroupVersion.Group || ref.Kind != infrav1.HookgateClusterKind {
			return nil, nil
		}
		return get[infrav1.HookgateCluster](ctx, r.client, namespace, ref.Name)
	}
	if name == "" {
		return nil, nil
	}
	list := &infrav1.HookgateClusterList{}
	err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name})
	if err != nil || len(list.Items) != 1 {
		return nil, err
	}
	return &list.Items[0], nil
}

// observeClass observes the class, whether the object may use it, and where its credentials are.
func (r *base) observeClass(ctx context.Context, w *scope, o client.Object) error {
	var err error
	if w.class, err = get[infrav1.InfrastructureClass](ctx, r.client, "", w.className); err != nil || w.class == nil {
		return err
	}
	if w.namespaceAllowed, err = r.allowed(ctx, w.class.Spec.AllowedNamespaces, o.GetNamespace()); err != nil {
		return err
	}
	if ref := w.class.Spec.CredentialsRef; ref != nil {
		w.credentials = &types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	if w.infra == nil {
		if name := o.GetAnnotations()[infrav1.CredentialsAnnotation]; name != "" {
			w.credentials = &types.NamespacedName{Namespace: o.GetNamespace(), Name: name}
		}
		return r.observeIdentity(ctx, w, o.GetNamespace(), o.GetAnnotations()[infrav1.IdentityAnnotation])
	}
	if ref := w.infra.Spec.IdentityRef; ref != nil {
		return r.observeIdentity(ctx, w, o.GetNamespace(), ref.Name)
	}
	if ref := w.infra.Spec.CredentialsRef; ref != nil {
		if ref.Namespace != "" && ref.Namespace != w.infra.Namespace {
			w.foreign = ref.Namespace + "/" + ref.Name
		}
		w.credentials = &types.NamespacedName{Namespace: w.infra.Namespace, Name: ref.Name}
	}
	return nil
}

// observeIdentity observes an identity, unless the name is empty, and whether it may be used in a namespace.
func (r *base) observeIdentity(ctx context.Context, w *scope, namespace, name string) error {
	var err error
	w.identityName = name
	if w.identity, err = get[infrav1.HookgateClusterIdentity](ctx, r.client, "", name); err != nil || w.identity == nil {
		return err
	}
	w.credentials = r.secretOf(w.identity)
	w.identityAllowed, err = r.allowed(ctx, w.identity.Spec.AllowedNamespaces, namespace)
	return err
}

// allowed reports whether what says a may be used in a namespace.
func (r *base) allowed(ctx context.Context, a *infrav1.AllowedNamespaces, name string) (bool, error) {
	if a == nil {
		return true, nil
	}
	namespace := namespaceMetadata()
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Namespace %s: %w", name, err)
	}
	allowed, err := a.Allow(name, namespace.Labels)
	return allowed && err == nil, nil // a selector that is invalid selects nothing; the class or identity says so
}
