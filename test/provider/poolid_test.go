// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

// grouped makes a pool one whose backend chooses what goes.
func grouped(p *infrav1.HookgateMachinePool) {
	p.Spec.InstanceManagement = infrav1.InstanceManagementGroup
}

// answersPools changes the answers about pools that the cloud gives.
func (c *cloud) answersPools(change func(*infrahooksv1alpha1.ReconcileMachinePoolResponse)) {
	c.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest)
		if !ok {
			return nil, nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		a := c.list(r.GetSubject().GetExternalId())
		change(a)
		return a, nil
	})
}

// The provider ID of a pool is recorded when it is answered, and stays: an answer with another one is about something
// else, and none of it is used.
func TestProviderIDOfAPool(t *testing.T) {
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 0, grouped)
	eventually(w, infra, "no instances", settled(0))
	if infra.Spec.ProviderID != "" {
		t.Fatalf("spec.providerID is %q, and none was answered", infra.Spec.ProviderID)
	}
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](2) })
	eventually(w, infra, "2 instances", settled(2))
	id := "groups/" + infra.Spec.ExternalID
	if infra.Spec.ProviderID != id {
		t.Fatalf("spec.providerID is %q, want %q", infra.Spec.ProviderID, id)
	}
	before := slices.Clone(infra.Spec.ProviderIDList)
	w.cloud.answersPools(func(r *infrahooksv1alpha1.ReconcileMachinePoolResponse) {
		r.ProviderId, r.Instances, r.InstanceCount = "groups/other", r.Instances[:1], new(int32(1))
	})
	eventually(w, infra, "in conflict", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.ProviderIDConflictReason,
			`"groups/other" for the pool, and "`+id+`" is recorded`)
	})
	if infra.Spec.ProviderID != id || !slices.Equal(infra.Spec.ProviderIDList, before) || *infra.Status.Replicas != 2 {
		t.Errorf("after an answer about another pool: %v %v", infra.Spec, infra.Status)
	}
	// An answer without it says nothing about it.
	w.cloud.answersPools(func(r *infrahooksv1alpha1.ReconcileMachinePoolResponse) { r.ProviderId = "" })
	eventually(w, infra, "in sync", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.SyncedCondition, metav1.ConditionTrue, "", "")
	})
	if infra.Spec.ProviderID != id {
		t.Errorf("spec.providerID is %q after an answer without it, want %q", infra.Spec.ProviderID, id)
	}
	w.cloud.answers(nil)

	// Two pools never stand for the same thing.
	_, second := w.newPool("c", "second", 0, grouped)
	eventually(w, second, "no instances", settled(0))
	w.cloud.answersPools(func(r *infrahooksv1alpha1.ReconcileMachinePoolResponse) {
		r.ProviderId = id
	})
	eventually(w, second, "refused", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.DuplicateProviderIDReason,
			"belongs to HookgateMachinePool "+w.namespace+"/p")
	})
	w.cloud.answers(nil)
	w.delete(second)
	w.gone(second)
	w.delete(infra)
	w.gone(infra)
}
