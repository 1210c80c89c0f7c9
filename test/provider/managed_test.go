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

// The machines and pools of a HookgateCluster that something else manages say what that has not set, and are made once
// it has. The HookgateCluster itself is neither written nor called about.
func TestAnExternallyManagedClusterHasMachines(t *testing.T) {
	w := newFixture(t)
	cluster, infra := w.newCluster("c", func(c *infrav1.HookgateCluster) {
		c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "rack-operator"}
	})
	_, m := w.newMachine("c", "m")
	_, p := w.newPool("c", "p", 2)
	both := func(missing string) {
		t.Helper()
		text := `HookgateCluster "c" is managed by "rack-operator" (annotation cluster.x-k8s.io/managed-by), ` +
			"which has not set its " + missing + " yet"
		const reason = infrav1.WaitingForClusterInfrastructureReason
		eventually(w, m, text, func(m *infrav1.HookgateMachine) bool {
			return has(m, infrav1.ReadyCondition, metav1.ConditionFalse, reason, text)
		})
		eventually(w, p, text, func(p *infrav1.HookgateMachinePool) bool {
			return has(p, infrav1.ReadyCondition, metav1.ConditionFalse, reason, text)
		})
	}
	both("spec.externalID")
	update(w, infra, func(c *infrav1.HookgateCluster) {
		c.Spec.ExternalID = "rack-7"
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.9", Port: 6443}
	})
	both("status.initialization.provisioned")
	if n := w.cloud.count(); n != 0 {
		t.Errorf("%d calls before the infrastructure of the Cluster is there", n)
	}
	updateStatus(w, infra, func(c *infrav1.HookgateCluster) {
		c.Status.Outputs = jsonOf(`{"network":"n7"}`)
		c.Status.Initialization.Provisioned = new(true)
	})
	// Cluster API copies it.
	updateStatus(w, cluster, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = new(true) })
	eventually(w, m, "provisioned", isProvisioned)
	eventually(w, p, "2 machines", settled(2))
	for _, r := range calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud) {
		if s := r.GetSubject(); s.GetClusterExternalId() != "rack-7" || string(s.GetClusterOutputs().GetRaw()) != `{"network":"n7"}` {
			t.Errorf("the extension was asked about %v", s)
		}
	}
	w.delete(m)
	w.gone(m)
	w.delete(p)
	w.gone(p)
	if !w.get(infra) || len(infra.Status.Conditions) != 0 || len(infra.Finalizers) != 0 {
		t.Errorf("the HookgateCluster was written: finalizers %v, status %v", infra.Finalizers, infra.Status)
	}
	w.delete(infra)
	w.gone(infra)
	if n := len(calls[*infrahooksv1alpha1.ReconcileClusterRequest](w.cloud)) +
		len(calls[*infrahooksv1alpha1.DeleteClusterRequest](w.cloud)); n != 0 {
		t.Errorf("%d calls about the HookgateCluster", n)
	}
}
