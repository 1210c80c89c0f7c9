// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deleteForMoveAnnotation is on objects that clusterctl deletes because it has moved them. What they stand for goes on.
const deleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

// exempt reports whether the controllers must leave an object alone: neither call nor write.
func exempt(o metav1.Object) bool {
	annotations := o.GetAnnotations()
	_, managed := annotations[clusterv1.ManagedByAnnotation]
	_, moved := annotations[deleteForMoveAnnotation]
	return managed || moved
}

// pausedBy returns what pauses an object, and an empty text if nothing does.
func pausedBy(cluster *clusterv1.Cluster, o metav1.Object) string {
	var causes []string
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) {
		causes = append(causes, "spec.paused of the Cluster is true")
	}
	if _, ok := o.GetAnnotations()[clusterv1.PausedAnnotation]; ok {
		causes = append(causes, "the object has the annotation "+clusterv1.PausedAnnotation)
	}
	return strings.Join(causes, ", and ")
}
