// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

// A paused class is not discovered, and one that is being deleted does not look healthy: it says what it is kept for.
func TestAClassSaysThatItIsPausedOrDeleted(t *testing.T) {
	w := newFixture(t)
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	is := func(kind string, status metav1.ConditionStatus, reason, text string) func(*infrav1.InfrastructureClass) bool {
		return func(c *infrav1.InfrastructureClass) bool { return has(c, kind, status, reason, text) }
	}
	eventually(w, class, "ready", is(infrav1.ReadyCondition, metav1.ConditionTrue, "", ""))
	eventually(w, class, "not paused", is(infrav1.PausedCondition, metav1.ConditionFalse, "", ""))
	update(w, class, func(c *infrav1.InfrastructureClass) {
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	eventually(w, class, "paused", is(infrav1.PausedCondition, metav1.ConditionTrue, "", clusterv1.PausedAnnotation))
	before := len(calls[*infrahooksv1alpha1.DiscoverInfrastructureRequest](w.cloud))
	_, infra := w.readyCluster("c") // which the class goes on to serve
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Spec.Handlers.DeleteCluster = "nosuch" })
	_, m := w.readyMachine("c", "m") // the queue has come past the class
	if n := len(calls[*infrahooksv1alpha1.DiscoverInfrastructureRequest](w.cloud)); n != before {
		t.Errorf("a paused class was discovered %d times", n-before)
	}
	w.delete(class)
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Annotations, c.Spec.Handlers = nil, infrav1.Handlers{} })
	eventually(w, class, "kept for a Cluster", is(infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason,
		"the class is being deleted, and is kept for what uses it, such as HookgateCluster "+w.namespace+"/c"))
	w.delete(m)
	w.gone(m)
	w.delete(infra)
	w.gone(infra)
	w.gone(class)
}
