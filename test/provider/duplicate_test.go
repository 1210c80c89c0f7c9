// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

// A manifest that was copied with its externalID does not take over what exists, and its deletion does not delete it.
func TestACopyDoesNotTakeOver(t *testing.T) {
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	_, infra := w.readyCluster("c")
	_, first := w.readyMachine("c", "z") // by name, it comes after its copy
	_, pool := w.newPool("c", "p", 1)
	eventually(w, pool, "1 instance", settled(1))
	w.until("another second", func() bool { return metav1.Now().Unix() > pool.CreationTimestamp.Unix() })
	finalized := func(o metav1.Object, finalizer string) { o.SetFinalizers([]string{finalizer}) }
	_, machineCopy := w.newMachine("c", "a", func(m *infrav1.HookgateMachine) {
		m.Spec.ExternalID, m.Spec.ProviderID = first.Spec.ExternalID, first.Spec.ProviderID
		finalized(m, infrav1.MachineFinalizer)
	})
	_, poolCopy := w.newPool("c", "q", 1, func(p *infrav1.HookgateMachinePool) {
		p.Spec.ExternalID = pool.Spec.ExternalID
		finalized(p, infrav1.MachinePoolFinalizer)
	})
	_, clusterCopy := w.newCluster("d", func(c *infrav1.HookgateCluster) {
		c.Spec.ExternalID = infra.Spec.ExternalID
		finalized(c, infrav1.ClusterFinalizer)
	})
	eventually(w, machineCopy, "refused", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.DuplicateExternalIDReason, "/z: delete this object, and create it again without")
	})
	eventually(w, poolCopy, "refused", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.DuplicateExternalIDReason, "/p: delete this object")
	})
	eventually(w, clusterCopy, "refused", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.DuplicateExternalIDReason, "/c: delete this object")
	})
	w.delete(machineCopy)
	w.delete(poolCopy)
	w.delete(clusterCopy)
	w.gone(machineCopy)
	w.gone(poolCopy)
	w.gone(clusterCopy)
	for _, r := range calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud)[1:] {
		if r.GetSubject().GetName() != "p" {
			t.Errorf("ReconcileMachinePool was called for %s", r.GetSubject().GetName())
		}
	}
	machines, clusters := calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud), calls[*infrahooksv1alpha1.ReconcileClusterRequest](w.cloud)
	if len(machines) != 1 || len(clusters) != 1 || len(calls[*infrahooksv1alpha1.DeleteMachineRequest](w.cloud)) != 0 ||
		len(calls[*infrahooksv1alpha1.DeleteMachinePoolRequest](w.cloud)) != 0 || len(calls[*infrahooksv1alpha1.DeleteClusterRequest](w.cloud)) != 0 {
		t.Errorf("called for a copy")
	}
	if !w.get(first) || !has(first, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") || len(w.cloud.existing()) != 1 {
		t.Errorf("the first one is\n%s", conditionsOf(first))
	}
}
