// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// A Cluster and a Machine become ready, say what the contract wants, and are deleted in the contract's order.
func TestClusterAndMachine(t *testing.T) {
	w := newFixture(t)
	cluster, infra := w.readyCluster("one")
	if want := (clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}); infra.Spec.ControlPlaneEndpoint != want {
		t.Errorf("the endpoint is %v, want %v", infra.Spec.ControlPlaneEndpoint, want)
	}
	if d := infra.Status.FailureDomains; len(d) != 2 || d[0].Name != "a" || d[0].ControlPlane == nil || d[1].Name != "b" {
		t.Errorf("the failure domains are %v", d)
	}
	machine, infraMachine := w.readyMachine("one", "m")
	if want := "fake://" + infraMachine.Spec.ExternalID; infraMachine.Spec.ProviderID != want {
		t.Errorf("the provider ID is %q, want %q", infraMachine.Spec.ProviderID, want)
	}
	if a := infraMachine.Status.Addresses; len(a) != 1 || a[0].Type != clusterv1.MachineInternalIP || a[0].Address != "10.0.0.7" {
		t.Errorf("the addresses are %v", a)
	}
	if infraMachine.Status.FailureDomain != "a" {
		t.Errorf("the failure domain is %q, want a", infraMachine.Status.FailureDomain)
	}
	for _, c := range []string{infrav1.ReadyCondition, infrav1.SyncedCondition, infrav1.ParametersValidCondition} {
		if !has(infraMachine, c, metav1.ConditionTrue, "", "") {
			t.Errorf("condition %s is not True:\n%s", c, conditionsOf(infraMachine))
		}
	}
	if !has(infraMachine, infrav1.PausedCondition, metav1.ConditionFalse, infrav1.NotPausedReason, "") {
		t.Errorf("condition Paused is not False:\n%s", conditionsOf(infraMachine))
	}

	req := calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)[0]
	s := req.GetSubject()
	if s.GetClusterExternalId() != infra.Spec.ExternalID || s.GetNamespace() != w.namespace || s.GetName() != "m" ||
		s.GetClusterName() != "one" || string(s.GetParameters().GetRaw()) != `{"size":"small"}` ||
		string(s.GetClusterOutputs().GetRaw()) != `{"network":"n1"}` || len(s.GetCluster().GetRaw()) == 0 ||
		len(s.GetMachine().GetRaw()) == 0 {
		t.Errorf("the subject is %v", s)
	}
	if string(req.GetBootstrap().GetData()) != "#cloud-config\n# m" || req.GetBootstrap().GetFormat() != "cloud-config" ||
		req.GetVersion() != "v1.34.0" || req.GetHandler() != "h2.acme" {
		t.Errorf("the request is %v", req)
	}

	w.delete(infra)
	eventually(w, infra, "waiting for the machine", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, "waits until the HookgateMachines")
	})
	w.delete(infraMachine)
	w.gone(infraMachine)
	w.gone(infra)
	if n := len(w.cloud.existing()); n != 0 {
		t.Errorf("%d machines are left", n)
	}
	_, _ = cluster, machine
}
