// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

func blocksMove(o client.Object) bool {
	_, ok := o.GetAnnotations()["clusterctl.cluster.x-k8s.io/block-move"]
	return ok
}

// clusterctl pauses a Cluster, and moves it once no object blocks it. A machine blocks it while the call that makes it is
// in flight, and until its provider ID is stored.
func TestAMoveWaitsForACallInFlight(t *testing.T) {
	w := newFixture(t)
	cluster, infra := w.readyCluster("c")
	_, done := w.readyMachine("c", "done")
	if blocksMove(infra) || blocksMove(done) {
		t.Error("what has been made blocks a move")
	}
	called, answer := make(chan struct{}), make(chan struct{})
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest)
		if !ok || r.GetProviderId() != "" {
			return nil, nil
		}
		called <- struct{}{}
		<-answer
		return &infrahooksv1alpha1.ReconcileMachineResponse{
			Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_PROVISIONING, RetryAfterSeconds: 1,
		}, nil
	})
	_, m := w.newMachine("c", "m")
	<-called
	if !w.get(m) || !blocksMove(m) {
		t.Error("nothing blocks a move while the machine is being made")
	}
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	eventually(w, done, "paused", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.PausedCondition, metav1.ConditionTrue, "", "")
	})
	if !w.get(m) || !blocksMove(m) || has(m, infrav1.PausedCondition, metav1.ConditionTrue, "", "") {
		t.Error("nothing blocks a move while the call is in flight")
	}
	answer <- struct{}{}
	eventually(w, m, "paused, and free to go", func(m *infrav1.HookgateMachine) bool {
		return !blocksMove(m) && has(m, infrav1.PausedCondition, metav1.ConditionTrue, "", "")
	})
	w.cloud.answers(nil)
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	eventually(w, m, "made, and free to go", func(m *infrav1.HookgateMachine) bool { return isProvisioned(m) && !blocksMove(m) })
}

// A group blocks a move as well while it grows: during the call that makes instances, and until all have provider IDs.
func TestAMoveWaitsForAGroupThatGrows(t *testing.T) {
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	cluster, _ := w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 1, grouped)
	free := func(n int) func(*infrav1.HookgateMachinePool) bool {
		return func(p *infrav1.HookgateMachinePool) bool { return settled(n)(p) && !blocksMove(p) }
	}
	eventually(w, infra, "made, and free to go", free(1))
	called, answer := make(chan struct{}), make(chan struct{})
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest)
		if !ok || r.GetReplicas() != 3 {
			return nil, nil
		}
		called <- struct{}{}
		<-answer
		a, err := w.cloud.ReconcileMachinePool(t.Context(), r)
		a.Phase = infrahooksv1alpha1.Phase_PHASE_PROVISIONING
		last := &infrahooksv1alpha1.Instance{Name: a.Instances[2].Name, Phase: a.Phase} // it has no provider ID yet
		a.Instances[2] = last
		return a, err
	})
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = new(int32(3)) })
	<-called
	if !w.get(infra) || !blocksMove(infra) {
		t.Error("nothing blocks a move while the group grows")
	}
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	if !w.get(infra) || !blocksMove(infra) {
		t.Error("nothing blocks a move of a paused group while a call is in flight")
	}
	answer <- struct{}{}
	eventually(w, infra, "paused, and free to go", func(p *infrav1.HookgateMachinePool) bool {
		return !blocksMove(p) && has(p, infrav1.PausedCondition, metav1.ConditionTrue, "", "")
	})
	if *infra.Status.Replicas != 3 || len(infra.Spec.ProviderIDList) != 2 {
		t.Errorf("the answer before the pause is not recorded: %v %v", infra.Spec.ProviderIDList, infra.Status)
	}
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	<-called
	w.cloud.answers(nil)
	answer <- struct{}{}
	eventually(w, infra, "grown, and free to go", free(3))
	if w.cloud.sequence != 3 {
		t.Errorf("%d instances were made, want 3", w.cloud.sequence)
	}
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = new(int32(1)) })
	eventually(w, infra, "asked for less, and free to go", func(p *infrav1.HookgateMachinePool) bool {
		return *p.Status.Replicas == 1 && !blocksMove(p)
	})
}
