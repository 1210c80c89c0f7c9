// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owner finds the Cluster that objects are about, and makes it their owner: what a gateway remembers of a
// Cluster is deleted and moved with it. It asks for lists, which takes no right besides those for a watch.
package owner

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterKind is Cluster API's kind.
var ClusterKind = clusterv1.GroupVersion.WithKind("Cluster")

// Find returns the metadata of a Cluster, nil if there is none.
func Find(ctx context.Context, from client.Reader, name types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(ClusterKind)
	err := from.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{"metadata.name": name.Name})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read Cluster: %w", err)
	case len(list.Items) == 0:
		return nil, nil
	}
	return &list.Items[0], nil
}

// ClusterUID returns the UID of the Cluster that owns an object, empty if none does.
func ClusterUID(o metav1.Object) types.UID {
	for _, of := range o.GetOwnerReferences() {
		if of.Kind == ClusterKind.Kind {
			return of.UID
		}
	}
	return ""
}

// SetCluster makes a Cluster the owner of an object, which is deleted with it, and which clusterctl moves along.
func SetCluster(o, cluster metav1.Object) {
	o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: ClusterKind.GroupVersion().String(), Kind: ClusterKind.Kind,
		Name: cluster.GetName(), UID: cluster.GetUID(),
	}))
}
