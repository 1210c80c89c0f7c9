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
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

const drainFinalizer = "test.hookgate.dev/drain"

// machineOf creates the Machine of a HookgateMachine of a pool, and makes it the controller, as Cluster API does. It
// stays until its Node is drained.
func (w *fixture) machineOf(m *infrav1.HookgateMachine) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Finalizers: []string{drainFinalizer}}}
	machine.Spec.ClusterName = m.Labels[clusterv1.ClusterNameLabel]
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateMachineKind, Name: m.Name,
	}
	w.create(machine)
	update(w, m, func(m *infrav1.HookgateMachine) {
		m.OwnerReferences = append(m.OwnerReferences, owner("Machine", machine, true))
	})
	return machine
}

// drained does what Cluster API does when the Node of a Machine has been drained.
func (w *fixture) drained(machine *clusterv1.Machine) {
	w.t.Helper()
	m := &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Namespace: machine.Namespace}}
	w.delete(m)
	w.gone(m)
	update(w, machine, func(m *clusterv1.Machine) { m.Finalizers = nil })
}

// instances returns the instances of the only group that a cloud has.
func (c *cloud) instances() []*infrahooksv1alpha1.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.groups {
		return slices.Clone(list)
	}
	return nil
}

func isDeleting(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }

// shows waits until a pool has a HookgateMachine for each instance, and returns them.
func (w *fixture) shows(pool string, n int) []infrav1.HookgateMachine {
	w.t.Helper()
	var list []infrav1.HookgateMachine
	w.until("a HookgateMachine for each instance", func() bool {
		list = w.poolMachines(pool)
		return len(list) == n && !slices.ContainsFunc(list, func(m infrav1.HookgateMachine) bool { return !isProvisioned(&m) })
	})
	return list
}

// An extension with hooks for pools makes the instances, and each is a Machine: nothing goes before its Node is
// drained, and the backend never chooses.
func TestInstancesOfAGroupAreMachines(t *testing.T) {
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 3)
	eventually(w, infra, "3 instances", settled(3))
	if infra.Status.InfrastructureMachineKind != infrav1.HookgateMachineKind ||
		infra.Annotations[infrav1.InstancesAnnotation] != infrav1.InstancesOfGroup {
		t.Errorf("the pool is %v, %v", infra.Status, infra.Annotations)
	}
	machines := map[string]*clusterv1.Machine{}
	for _, m := range w.shows("p", 3) {
		o := m.OwnerReferences
		if len(o) != 1 || o[0].Controller != nil || o[0].Kind != infrav1.HookgateMachinePoolKind || o[0].UID != infra.UID ||
			m.Labels[clusterv1.ClusterNameLabel] != "c" || m.Labels[clusterv1.MachinePoolNameLabel] != "p" ||
			!slices.Contains(infra.Spec.ProviderIDList, m.Spec.ProviderID) || !slices.Contains(m.Finalizers, infrav1.MachineFinalizer) ||
			!has(&m, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") {
			t.Errorf("%s has owners %v, labels %v, finalizers %v, %v\n%s", m.Name, o, m.Labels, m.Finalizers, m.Spec, conditionsOf(&m))
		}
		machines[m.Name] = w.machineOf(&m)
	}
	if n := len(calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)); n != 0 {
		t.Errorf("ReconcileMachine was called %d times", n)
	}
	one := w.poolMachines("p")[1]
	w.remediates(&one, machines[one.Name])
	w.scalesDown(pool, infra)
	w.rollsOut(pool, infra)
	if w.cloud.chosen != 0 {
		t.Errorf("the backend chose %d instances itself", w.cloud.chosen)
	}
	w.deletesGroup(infra)
}

// remediates deletes the Machine of an instance, as a health check does: after the drain that instance goes, and no
// other.
func (w *fixture) remediates(m *infrav1.HookgateMachine, machine *clusterv1.Machine) {
	w.t.Helper()
	w.delete(machine)
	w.drained(machine)
	for _, i := range w.cloud.instances() {
		if i.GetProviderId() == m.Spec.ProviderID {
			w.t.Errorf("the instance of the deleted Machine still exists")
		}
	}
	for _, r := range calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud) {
		if len(r.GetRemove()) > 0 && !slices.Equal(r.GetRemove(), []string{m.Spec.ProviderID}) || r.GetReplicas() != 3 {
			w.t.Errorf("asked for %d instances without %v", r.GetReplicas(), r.GetRemove())
		}
	}
	for _, next := range w.shows("p", 3) {
		w.t.Logf("%s is instance %s", next.Name, next.Annotations[infrav1.InstanceAnnotation])
		if len(next.OwnerReferences) == 1 {
			w.machineOf(&next)
		}
	}
}

// scalesDown scales from 3 to 2: the number that the extension is asked for stays until the Node is drained.
func (w *fixture) scalesDown(pool *clusterv1.MachinePool, infra *infrav1.HookgateMachinePool) {
	w.t.Helper()
	n := w.cloud.count()
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](2) })
	leaving := w.leaving(1)[0]
	w.until("asked again", func() bool { return w.cloud.count() > n+1 })
	if got := len(w.cloud.instances()); got != 3 {
		w.t.Errorf("%d instances before the drain, want 3", got)
	}
	w.drained(leaving)
	eventually(w, infra, "2 instances", settled(2))
}

// leaving waits until n Machines of the pool are being deleted, and returns them.
func (w *fixture) leaving(n int) []*clusterv1.Machine {
	w.t.Helper()
	var machines []*clusterv1.Machine
	w.until("Machines are being deleted", func() bool {
		machines = nil
		list := &clusterv1.MachineList{}
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			if isDeleting(&list.Items[i]) {
				machines = append(machines, &list.Items[i])
			}
		}
		return len(machines) >= n
	})
	if len(machines) != n {
		w.t.Fatalf("%d Machines are being deleted, want %d", len(machines), n)
	}
	return machines
}

// rollsOut gives the pool another version: one instance more at first, and one less after each drain.
func (w *fixture) rollsOut(pool *clusterv1.MachinePool, infra *infrav1.HookgateMachinePool) {
	w.t.Helper()
	before := slices.Clone(infra.Spec.ProviderIDList)
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "v1.35.0" })
	for range before {
		leaving := w.leaving(1)[0]
		if got := len(w.cloud.instances()); got != 3 {
			w.t.Errorf("%d instances in a rollout of 2, want 3", got)
		}
		w.drained(leaving)
	}
	eventually(w, infra, "rolled out", func(p *infrav1.HookgateMachinePool) bool {
		return settled(2)(p) && !slices.ContainsFunc(p.Spec.ProviderIDList, func(id string) bool { return slices.Contains(before, id) })
	})
}

// deletesGroup deletes a pool, one of whose Nodes is still being drained: nothing is removed meanwhile.
func (w *fixture) deletesGroup(infra *infrav1.HookgateMachinePool) {
	w.t.Helper()
	one := w.shows("p", 2)[0]
	machine := w.machineOf(&one)
	w.delete(infra)
	eventually(w, machine, "deleted", isDeleting)
	eventually(w, infra, "waits for the drain", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, "have been drained")
	})
	if n := len(calls[*infrahooksv1alpha1.DeleteMachinePoolRequest](w.cloud)); n != 0 || len(w.cloud.instances()) != 2 {
		w.t.Errorf("DeleteMachinePool was called %d times before the drain", n)
	}
	m := &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: one.Namespace}}
	w.delete(m)
	w.gone(infra)
	w.gone(m)
	if n := len(w.cloud.instances()); n != 0 || len(w.poolMachines("p")) != 0 {
		w.t.Errorf("%d instances and %d HookgateMachines are left", n, len(w.poolMachines("p")))
	}
}

// An extension that gains hooks for pools does not change the pools that exist.
func TestAPoolStaysMadeOfMachines(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 1)
	eventually(w, infra, "1 machine", settled(1))
	w.cloud.mu.Lock()
	w.cloud.pools = true
	w.cloud.mu.Unlock()
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	update(w, class, func(c *infrav1.InfrastructureClass) { c.Spec.Handlers.ReconcileMachine = "h2" }) // discovers again
	eventually(w, class, "hooks for pools", func(c *infrav1.InfrastructureClass) bool { return c.Status.Handlers.ReconcileMachinePool != "" })
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](2) })
	eventually(w, infra, "2 machines", settled(2))
	if n := len(calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud)); n != 0 {
		t.Errorf("ReconcileMachinePool was called %d times", n)
	}
	_, other := w.newPool("c", "q", 1)
	eventually(w, other, "1 instance", settled(1))
	if n := len(calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud)); n == 0 {
		t.Error("the hooks for pools do not make a new pool")
	}
}

// An answer that lacks an instance which nothing asked to remove releases nothing, also not one that is being deleted
// for another reason.
func TestAnInstanceIsNotReleasedByAnAnswerThatLacksIt(t *testing.T) {
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	w.readyCluster("c")
	_, infra := w.newPool("c", "p", 2)
	eventually(w, infra, "2 instances", settled(2))
	one := w.shows("p", 2)[0]
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest)
		if !ok {
			return nil, nil
		}
		w.cloud.mu.Lock()
		defer w.cloud.mu.Unlock()
		a := w.cloud.list(r.GetSubject().GetExternalId())
		if len(r.GetRemove()) == 0 {
			a.Instances = slices.DeleteFunc(a.Instances, func(i *infrahooksv1alpha1.Instance) bool {
				return i.GetProviderId() == one.Spec.ProviderID
			})
			a.InstanceCount = new(int32(len(a.Instances)))
		}
		return a, nil
	})
	n := w.cloud.count()
	w.until("asked three times", func() bool { return w.cloud.count() >= n+3 })
	if !w.get(&one) || !has(&one, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") {
		t.Errorf("answers that lack the instance for less than 30 s changed it:\n%s", conditionsOf(&one))
	}
	// The extension still lists it although it was to be removed.
	w.delete(&one)
	n = w.cloud.count()
	w.until("asked three times", func() bool { return w.cloud.count() >= n+3 })
	if !w.get(&one) || !slices.Contains(one.Finalizers, infrav1.MachineFinalizer) {
		t.Error("released although the instance exists")
	}
	w.cloud.answers(nil)
	w.gone(&one)
	w.shows("p", 2)
}
