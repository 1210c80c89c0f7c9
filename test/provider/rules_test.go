// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

// Rule 1: no outside call before the externalID and the finalizer are stored.
func TestRule1NothingIsCalledBeforeTheExternalIDIsStored(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if r, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest); ok {
			m := &infrav1.HookgateMachine{}
			if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "m"}, m); err != nil {
				t.Error(err)
			}
			if m.Spec.ExternalID != r.GetSubject().GetExternalId() || !slices.Contains(m.Finalizers, infrav1.MachineFinalizer) {
				t.Errorf("called with externalID %q; stored are %q and finalizers %v", r.GetSubject().GetExternalId(),
					m.Spec.ExternalID, m.Finalizers)
			}
		}
		return nil, nil
	})
	w.writes.refused("/hookgatemachines/")
	before := w.cloud.count()
	_, m := w.newMachine("c", "m")
	w.until("an attempt to store the externalID", func() bool {
		return slices.ContainsFunc(w.writes.all(), func(s string) bool { return strings.HasSuffix(s, "/hookgatemachines/m") })
	})
	if n := w.cloud.count() - before; n != 0 {
		t.Errorf("%d calls although nothing could be stored", n)
	}
	w.writes.refused("")
	eventually(w, m, "provisioned", isProvisioned)
	if n := w.cloud.madeOf(m.Spec.ExternalID); n != 1 || len(w.cloud.existing()) != 1 {
		t.Errorf("made %d times; there are %v", n, w.cloud.existing())
	}
}

// Rule 2: a failed call changes only Synced.
func TestRule2AFailedCallChangesOnlySynced(t *testing.T) {
	w := newFixture(t)
	cluster, infra := w.readyCluster("c")
	machine, m := w.readyMachine("c", "m")
	w.cloud.down()
	update(w, machine, func(m *clusterv1.Machine) { m.Spec.Version = "v1.34.1" })
	update(w, infra, func(c *infrav1.HookgateCluster) {
		c.Spec.CredentialsRef = nil
		c.Spec.Parameters = jsonOf(`{"region":"x"}`)
	})
	wantM, wantC := m.DeepCopy(), infra.DeepCopy()
	unsynced := func(o client.Object) bool {
		return has(o, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.CallFailedReason, "the extension is down")
	}
	eventually(w, m, "unsynced", func(m *infrav1.HookgateMachine) bool { return unsynced(m) })
	eventually(w, infra, "unsynced", func(c *infrav1.HookgateCluster) bool { return unsynced(c) })
	for _, o := range []struct{ before, after any }{
		{withoutSynced(wantM.Status.Conditions), withoutSynced(m.Status.Conditions)}, {wantM.Spec, m.Spec},
		{wantM.Status.Addresses, m.Status.Addresses}, {wantM.Status.Initialization, m.Status.Initialization},
		{withoutSynced(wantC.Status.Conditions), withoutSynced(infra.Status.Conditions)}, {wantC.Spec, infra.Spec},
		{wantC.Status.FailureDomains, infra.Status.FailureDomains}, {wantC.Status.Initialization, infra.Status.Initialization},
		{wantC.Status.Outputs, infra.Status.Outputs},
	} {
		if d := cmp.Diff(o.before, o.after); d != "" {
			t.Errorf("changed (-before +after):\n%s", d)
		}
	}
	_ = cluster
}

// withoutSynced returns conditions without Synced, and without what every look changes.
func withoutSynced(list []metav1.Condition) []metav1.Condition {
	var rest []metav1.Condition
	for _, c := range list {
		if c.Type != infrav1.SyncedCondition {
			c.ObservedGeneration = 0
			rest = append(rest, c)
		}
	}
	return rest
}

// Rule 3: only GONE releases a finalizer.
func TestRule3OnlyGoneReleases(t *testing.T) {
	deleting := func(state infrahooksv1alpha1.DeletionState) (proto.Message, error) {
		return &infrahooksv1alpha1.DeleteMachineResponse{Status: success, State: state, RetryAfterSeconds: 1}, nil
	}
	for name, lie := range map[string]struct {
		answer func() (proto.Message, error)
		reason string // of Synced; empty if the answer is fine
	}{
		"Deleting": {func() (proto.Message, error) {
			return deleting(infrahooksv1alpha1.DeletionState_DELETION_STATE_DELETING)
		}, ""},
		"Unspecified": {func() (proto.Message, error) { return deleting(0) }, infrav1.BadAnswerReason},
		"Unknown":     {func() (proto.Message, error) { return deleting(7) }, infrav1.BadAnswerReason},
		"NoStatus":    {func() (proto.Message, error) { return &infrahooksv1alpha1.DeleteMachineResponse{State: 2}, nil }, infrav1.BadAnswerReason},
		"Failure": {func() (proto.Message, error) {
			return &infrahooksv1alpha1.DeleteMachineResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, State: 2, Message: "no",
			}, nil
		}, infrav1.CallFailedReason},
		"NotFound":      {func() (proto.Message, error) { return nil, status.Error(codes.NotFound, "no such machine") }, infrav1.CallFailedReason},
		"Timeout":       {func() (proto.Message, error) { return nil, status.Error(codes.DeadlineExceeded, "late") }, infrav1.CallFailedReason},
		"Unimplemented": {func() (proto.Message, error) { return nil, status.Error(codes.Unimplemented, "no") }, infrav1.CallFailedReason},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.readyCluster("c")
			_, m := w.readyMachine("c", "m")
			w.cloud.answers(func(req proto.Message) (proto.Message, error) {
				if _, ok := req.(*infrahooksv1alpha1.DeleteMachineRequest); ok {
					return lie.answer()
				}
				return nil, nil
			})
			w.delete(m)
			w.until("asked three times", func() bool { return len(calls[*infrahooksv1alpha1.DeleteMachineRequest](w.cloud)) >= 3 })
			if !w.get(m) || !slices.Contains(m.Finalizers, infrav1.MachineFinalizer) {
				t.Fatal("released")
			}
			if !has(m, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, "") ||
				lie.reason != "" && !has(m, infrav1.SyncedCondition, metav1.ConditionFalse, lie.reason, "") {
				t.Errorf("the conditions are\n%s", conditionsOf(m))
			}
			w.cloud.answers(nil)
			w.gone(m)
		})
	}
}

// Rule 3: neither a class that is gone, nor a handler, nor parameters that are invalid release anything.
func TestRule3NothingIsForgotten(t *testing.T) {
	w := newFixture(t)
	_, infra := w.readyCluster("c")
	_, m := w.readyMachine("c", "m")
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.delete(class)
	eventually(w, class, "kept while it is used", func(c *infrav1.InfrastructureClass) bool {
		return !c.DeletionTimestamp.IsZero() && slices.Contains(c.Finalizers, infrav1.ClassFinalizer)
	})
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Finalizers = nil }) // by force
	w.gone(class)
	w.delete(m)
	eventually(w, m, "without its class", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.ClassNotFoundReason, "create it again")
	})
	// A class whose extension has no DeleteMachine now, and other schemas.
	w.cloud.mu.Lock()
	w.cloud.announce = func(r *infrahooksv1alpha1.DiscoverInfrastructureResponse) {
		r.Handlers = r.Handlers[:3]
		r.MachineParameters = schemaOf(`{"type":"object","required":["zone"],"properties":{"zone":{"type":"string"}}}`)
	}
	w.cloud.mu.Unlock()
	class = &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	class.Spec.ExtensionRef.Name = "acme"
	w.create(class)
	eventually(w, class, "without a handler", func(c *infrav1.InfrastructureClass) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, "", "no handler for DeleteMachine")
	})
	eventually(w, m, "without a handler", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.MissingHandlerReason, "")
	})
	w.cloud.mu.Lock()
	announce := w.cloud.announce
	w.cloud.announce = func(r *infrahooksv1alpha1.DiscoverInfrastructureResponse) {
		handlers := r.Handlers
		announce(r)
		r.Handlers = handlers
	}
	w.cloud.mu.Unlock()
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Spec.Handlers.DeleteMachine = "h3" }) // asks again
	w.gone(m)                                                                                       // parameters that are invalid now do not keep it
	w.delete(infra)
	w.gone(infra)
	w.delete(class)
	w.gone(class)
}

// Rule 5: a missing Cluster, HookgateCluster, owner and bootstrap Secret do not skip the deletion, nor prevent it.
func TestRule5DeletionNeedsNoCluster(t *testing.T) {
	w := newFixture(t)
	w.create(secret("creds", "token", "very-secret"))
	cluster, infra := w.readyCluster("c", func(c *infrav1.HookgateCluster) {
		c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "creds"}
	})
	machine, m := w.readyMachine("c", "m")
	clusterID := infra.Spec.ExternalID
	w.stop()
	w.delete(secret("m-bootstrap", "", ""))
	w.delete(machine)
	w.delete(cluster)
	w.delete(infra)
	update(w, infra, func(c *infrav1.HookgateCluster) { c.Finalizers = nil }) // by force
	w.gone(infra)
	w.start() // those that knew the Cluster may learn after the deletion of the machine that it is gone
	w.delete(m)
	w.gone(m)
	requests := calls[*infrahooksv1alpha1.DeleteMachineRequest](w.cloud)
	if len(requests) != 1 {
		t.Fatalf("DeleteMachine was called %d times, want once", len(requests))
	}
	s := requests[0].GetSubject()
	if s.GetClusterExternalId() != clusterID || s.GetCredentials()["token"] != "very-secret" || s.GetCluster() != nil ||
		requests[0].GetProviderId() != "fake://"+s.GetExternalId() {
		t.Errorf("the request is %v", requests[0])
	}
	if len(w.cloud.existing()) != 0 {
		t.Errorf("there are still %v", w.cloud.existing())
	}
}

// Rule 6: objects that are paused, managed by others, or deleted by a move cause no call.
func TestRule6ExemptObjectsCauseNoCall(t *testing.T) {
	w := newFixture(t)
	cluster, _ := w.readyCluster("c")
	annotated := func(key string) func(*infrav1.HookgateMachine) {
		return func(m *infrav1.HookgateMachine) { m.Annotations = map[string]string{key: ""} }
	}
	before := w.cloud.count()
	_, paused := w.newMachine("c", "paused", annotated(clusterv1.PausedAnnotation))
	_, managed := w.newMachine("c", "managed", annotated(clusterv1.ManagedByAnnotation))
	eventually(w, paused, "paused", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.PausedCondition, metav1.ConditionTrue, infrav1.PausedReason, clusterv1.PausedAnnotation)
	})
	_, later := w.readyMachine("c", "later") // the queue has come past the others
	if n := w.cloud.count() - before; n != w.cloud.madeOf(later.Spec.ExternalID) {
		t.Errorf("%d calls, want one for the machine that is managed", n)
	}
	w.get(managed)
	if len(managed.Status.Conditions) != 0 || managed.Spec.ExternalID != "" || len(managed.Finalizers) != 0 {
		t.Errorf("an object that is managed by something else was written: %v %v", managed.Spec, managed.Status)
	}

	// A paused Cluster pauses its machines, in deletion as well.
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	eventually(w, later, "paused", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.PausedCondition, metav1.ConditionTrue, "", "spec.paused of the Cluster")
	})
	w.delete(later)
	// clusterctl move marks what it deletes.
	update(w, later, func(m *infrav1.HookgateMachine) {
		m.Annotations = map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
	})
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	w.readyMachine("c", "last")
	if n := len(calls[*infrahooksv1alpha1.DeleteMachineRequest](w.cloud)); n != 0 || !w.get(later) {
		t.Errorf("DeleteMachine was called %d times for a machine that has been moved", n)
	}
	update(w, paused, func(m *infrav1.HookgateMachine) { delete(m.Annotations, clusterv1.PausedAnnotation) })
	eventually(w, paused, "provisioned", isProvisioned)
}

// Rule 7: provisioned stays, the first endpoint never changes, and a provider ID is written once.
func TestRule7WhatWasProvisionedStays(t *testing.T) {
	w := newFixture(t)
	_, infra := w.readyCluster("c")
	machine, m := w.readyMachine("c", "m")
	id := m.Spec.ProviderID
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		switch req.(type) {
		case *infrahooksv1alpha1.ReconcileMachineRequest:
			r := readyMachine("other")
			r.RetryAfterSeconds = 1
			return r, nil
		case *infrahooksv1alpha1.ReconcileClusterRequest:
			return &infrahooksv1alpha1.ReconcileClusterResponse{
				Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_PROVISIONING, RetryAfterSeconds: 1,
				ControlPlaneEndpoint: &infrahooksv1alpha1.Endpoint{Host: "10.9.9.9", Port: 6443},
			}, nil
		}
		return nil, nil
	})
	update(w, infra, func(c *infrav1.HookgateCluster) { c.Spec.Parameters = jsonOf(`{"region":"x"}`) })
	update(w, machine, func(m *clusterv1.Machine) { m.Spec.Version = "v1.34.1" })
	eventually(w, infra, "in conflict", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.EndpointConflictReason, "10.9.9.9:6443, and 10.0.0.1:6443")
	})
	eventually(w, m, "in conflict", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.ProviderIDConflictReason, "fake://other")
	})
	if infra.Spec.ControlPlaneEndpoint.Host != "10.0.0.1" || !ptr.Deref(infra.Status.Initialization.Provisioned, false) ||
		!has(infra, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ProvisioningReason, "") {
		t.Errorf("the cluster is %v %v", infra.Spec, infra.Status)
	}
	if len(infra.Status.FailureDomains) != 2 || infra.Status.Outputs == nil {
		t.Errorf("an answer that is not ready removed failure domains or outputs: %v", infra.Status)
	}
	if m.Spec.ProviderID != id || !isProvisioned(m) || !has(m, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") {
		t.Errorf("the machine is %v\n%s", m.Spec, conditionsOf(m))
	}
}

// Rule 9: a recorded machine that vanishes is never made again.
func TestRule9AMachineThatVanishesIsNeverMadeAgain(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	machine, m := w.readyMachine("c", "m")
	w.cloud.lose(m.Spec.ExternalID)
	update(w, machine, func(m *clusterv1.Machine) { m.Spec.Version = "v1.34.1" }) // something to ask about
	eventually(w, m, "gone", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.InstanceGoneReason, "the machine is gone")
	})
	w.restart()
	n := w.cloud.count()
	w.until("asked again", func() bool { return w.cloud.count() >= n+3 })
	requests := calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)
	if last := requests[len(requests)-1]; last.GetBootstrap() != nil || last.GetProviderId() == "" {
		t.Errorf("asked with bootstrap data or without a provider ID: %v", last)
	}
	w.get(m)
	if w.cloud.madeOf(m.Spec.ExternalID) != 1 || !isProvisioned(m) || m.Spec.ProviderID == "" {
		t.Errorf("made %d times; %v", w.cloud.madeOf(m.Spec.ExternalID), m.Status)
	}
	w.delete(m)
	w.gone(m)
}

// Rule 10: the same provider ID for two machines is refused.
func TestRule10TheSameProviderIDTwice(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest); ok {
			return readyMachine("same"), nil
		}
		return nil, nil
	})
	_, one := w.newMachine("c", "one")
	_, two := w.newMachine("c", "two")
	refused := func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.DuplicateProviderIDReason, "belongs to HookgateMachine")
	}
	w.until("one ready and one refused", func() bool {
		w.get(one)
		w.get(two)
		return isProvisioned(one) && refused(two) || isProvisioned(two) && refused(one)
	})
	w.restart() // the cache alone knows now
	w.cloud.answers(nil)
	other := one
	if isProvisioned(one) {
		other = two
	}
	if other.Spec.ProviderID != "" {
		t.Errorf("the machine that was refused has the provider ID %q", other.Spec.ProviderID)
	}
	eventually(w, other, "provisioned once the extension finds it", isProvisioned)
}

// Rule 11: nothing is written while nothing changes.
func TestRule11UnchangedStatusIsNotWritten(t *testing.T) {
	w := newFixture(t)
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		switch r := req.(type) {
		case *infrahooksv1alpha1.ReconcileMachineRequest:
			a := readyMachine(r.GetSubject().GetExternalId())
			a.RetryAfterSeconds = 1
			a.Conditions = []*infrahooksv1alpha1.Condition{{Type: "DiskHealthy", Status: "True", Reason: "Fine", Message: "m"}}
			return a, nil
		case *infrahooksv1alpha1.ReconcileClusterRequest:
			return &infrahooksv1alpha1.ReconcileClusterResponse{
				Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_READY, RetryAfterSeconds: 1,
				ControlPlaneEndpoint: &infrahooksv1alpha1.Endpoint{Host: "10.0.0.1", Port: 6443},
			}, nil
		}
		return nil, nil
	})
	w.readyCluster("c")
	_, m := w.readyMachine("c", "m")
	if !has(m, "DiskHealthy", metav1.ConditionTrue, "Fine", "m") {
		t.Errorf("the extension's condition is missing:\n%s", conditionsOf(m))
	}
	before, n := w.writes.all(), w.cloud.count()
	w.until("asked again", func() bool { return w.cloud.count() >= n+6 })
	if after := w.writes.all(); len(after) != len(before) {
		t.Errorf("written: %v", after[len(before):])
	}
}

// Rule 12: an annotation with the externalID removes what the extension cannot, and is counted.
func TestRule12Abandon(t *testing.T) {
	w := newFixture(t)
	_, infra := w.readyCluster("c")
	_, m := w.readyMachine("c", "m")
	w.cloud.down()
	update(w, m, func(m *infrav1.HookgateMachine) { m.Annotations[infrav1.AbandonAnnotation] = "another" })
	w.delete(m)
	eventually(w, m, "not deleted", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.CallFailedReason, "")
	})
	update(w, m, func(m *infrav1.HookgateMachine) { m.Annotations[infrav1.AbandonAnnotation] = m.Spec.ExternalID })
	w.gone(m)
	if got := w.cloud.existing(); len(got) != 1 || got[0] != m.Spec.ExternalID {
		t.Errorf("outside there are %v, want the abandoned machine", got)
	}
	update(w, infra, func(c *infrav1.HookgateCluster) {
		c.Annotations = map[string]string{infrav1.AbandonAnnotation: c.Spec.ExternalID}
	})
	w.delete(infra)
	w.gone(infra)
	w.until("both are counted", func() bool { return w.counted("hookgate_infrastructure_abandoned_total") == 2 })
}
