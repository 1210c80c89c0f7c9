// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterapi reads what Cluster API says about objects of infrastructure: whose they are, and who decides their
// number. The controllers act on it, and what shows the objects reads the same.
package clusterapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// OwnerOf returns the name of the owner of a kind; empty if there is none. Owners have the version that wrote them.
func OwnerOf(o metav1.Object, group, kind string) string {
	for _, owner := range o.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && gv.Group == group && owner.Kind == kind {
			return owner.Name
		}
	}
	return ""
}

// ClusterName returns the name of the Cluster that an object belongs to, or is.
func ClusterName(o metav1.Object) string {
	if cluster, ok := o.(*clusterv1.Cluster); ok {
		return cluster.Name
	}
	if name := OwnerOf(o, clusterv1.GroupVersion.Group, clusterv1.ClusterKind); name != "" {
		return name
	}
	return o.GetLabels()[clusterv1.ClusterNameLabel]
}

// DecidesReplicas reports whether a MachinePool decides how many replicas its pool has.
func DecidesReplicas(p *clusterv1.MachinePool) bool {
	value, ok := p.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return !ok || value == "false"
}
