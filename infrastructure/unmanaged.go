// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deleteForMoveAnnotation is on objects that clusterctl deletes because it has moved them. What they stand for goes on.
const deleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

// blockMoveAnnotation keeps clusterctl move from starting. It is on objects from before their first call until what is
// made has been recorded: a call that goes on here while the first one is made there could make it twice. An object
// that is paused has no call in flight, and loses it. A group has it again while it grows.
const blockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

// blockMove returns the annotations of an object that is about to be made, which keep it from being moved meanwhile.
func blockMove(annotations map[string]string, recorded bool) map[string]string {
	result := maps.Clone(annotations)
	if result == nil {
		result = map[string]string{}
	}
	result[blockMoveAnnotation] = ""
	if !recorded {
		result[blockMoveAnnotation] = "until it has been made"
	}
	return result
}

// allowMove lets an object be moved.
func allowMove(o metav1.Object) {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, blockMoveAnnotation)
	o.SetAnnotations(annotations)
}

// unmanaged reports whether the controllers must leave an object alone: neither call nor write.
func unmanaged(o metav1.Object) bool {
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
