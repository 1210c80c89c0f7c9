// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

func (c *cloud) ReconcileMachinePool(
	_ context.Context, req *infrahooksv1alpha1.ReconcileMachinePoolRequest,
) (*infrahooksv1alpha1.ReconcileMachinePoolResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := req.GetSubject().GetExternalId()
	c.groups[id] = slices.DeleteFunc(c.groups[id], func(i *infrahooksv1alpha1.Instance) bool {
		return slices.Contains(req.GetRemove(), i.GetProviderId())
	})
	for len(c.groups[id]) < int(req.GetReplicas()) {
		c.sequence++
		c.groups[id] = append(c.groups[id], &infrahooksv1alpha1.Instance{
			Name: fmt.Sprintf("i%d", c.sequence), ProviderId: fmt.Sprintf("fake://%s/%d", id, c.sequence),
			Phase: infrahooksv1alpha1.Phase_PHASE_READY, Revision: req.GetRevision(), Version: req.GetVersion(),
		})
	}
	if n := len(c.groups[id]) - int(req.GetReplicas()); n > 0 {
		c.chosen += n
	}
	c.groups[id] = c.groups[id][:req.GetReplicas()]
	return c.list(id), nil
}

// list returns the answer with the instances of a pool. The caller holds the lock.
func (c *cloud) list(id string) *infrahooksv1alpha1.ReconcileMachinePoolResponse {
	return &infrahooksv1alpha1.ReconcileMachinePoolResponse{
		Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_READY, Instances: slices.Clone(c.groups[id]),
		InstanceCount: new(int32(len(c.groups[id]))), ProviderId: c.groupID(id), RetryAfterSeconds: 1,
	}
}

// groupID returns the provider ID of a pool, which is known once the pool has an instance. The caller holds the lock.
func (c *cloud) groupID(id string) string {
	if len(c.groups[id]) == 0 {
		return ""
	}
	return "groups/" + id
}

func (c *cloud) DeleteMachinePool(
	_ context.Context, req *infrahooksv1alpha1.DeleteMachinePoolRequest,
) (*infrahooksv1alpha1.DeleteMachinePoolResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, req.GetSubject().GetExternalId())
	return &infrahooksv1alpha1.DeleteMachinePoolResponse{
		Status: success, State: infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE,
	}, nil
}

// newPool creates a MachinePool with bootstrap data, and its HookgateMachinePool.
func (w *fixture) newPool(
	cluster, name string, replicas int32, change ...func(*infrav1.HookgateMachinePool),
) (*clusterv1.MachinePool, *infrav1.HookgateMachinePool) {
	w.t.Helper()
	w.create(secret(name+"-bootstrap", "value", "#cloud-config\n# "+name))
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
	pool.Spec.ClusterName, pool.Spec.Replicas = cluster, &replicas
	pool.Spec.FailureDomains = []string{"a", "b"}
	pool.Spec.Template.Spec.Version = "v1.34.0"
	pool.Spec.Template.Spec.Bootstrap.DataSecretName = new(name + "-bootstrap")
	pool.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateMachinePoolKind, Name: name,
	}
	w.create(pool)
	infra := &infrav1.HookgateMachinePool{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
		OwnerReferences: []metav1.OwnerReference{owner("MachinePool", pool, true)},
	}}
	for _, f := range change {
		f(infra)
	}
	w.create(infra)
	return pool, infra
}

// poolMachines returns the HookgateMachines of a pool.
func (w *fixture) poolMachines(pool string) []infrav1.HookgateMachine {
	w.t.Helper()
	list := &infrav1.HookgateMachineList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace),
		client.MatchingLabels{clusterv1.MachinePoolNameLabel: pool}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// settled reports whether a pool is ready with so many instances.
func settled(n int) func(*infrav1.HookgateMachinePool) bool {
	return func(p *infrav1.HookgateMachinePool) bool {
		return len(p.Spec.ProviderIDList) == n && ptr.Deref(p.Status.Replicas, -1) == int32(n) &&
			ptr.Deref(p.Status.Ready, false) && ptr.Deref(p.Status.Initialization.Provisioned, false) &&
			has(p, infrav1.ReadyCondition, metav1.ConditionTrue, "", "")
	}
}

// A pool shows what its machines have, which an autoscaler reads from the object that the MachinePool refers to. If its
// size is somebody else's, it stays as it is, because nobody says how many machines to make.
func TestPoolForAnAutoscaler(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 2, func(p *infrav1.HookgateMachinePool) { p.Spec.Parameters = jsonOf(`{"size":"large"}`) })
	eventually(w, infra, "2 machines", settled(2))
	w.announces(capacityOf("large", "16", "64Gi", "arm64"))
	eventually(w, infra, "large", func(p *infrav1.HookgateMachinePool) bool {
		return p.Status.Capacity.Cpu().String() == "16" && p.Status.Capacity.Memory().String() == "64Gi" &&
			p.Status.NodeInfo.Architecture == "arm64"
	})
	w.announces()
	eventually(w, infra, "without a capacity", func(p *infrav1.HookgateMachinePool) bool { return len(p.Status.Capacity) == 0 })

	update(w, pool, func(p *clusterv1.MachinePool) {
		p.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "somebody"}
		p.Spec.Replicas = ptr.To[int32](4)
	})
	eventually(w, infra, "refused", func(p *infrav1.HookgateMachinePool) bool {
		return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.ReplicasManagedReason, "remove the annotation") && settled(2)(p)
	})
	if made := w.cloud.existing(); len(made) != 2 {
		t.Errorf("%d machines exist", len(made))
	}
	_, other := w.newPool("c", "q", 1)
	eventually(w, other, "1 machine", settled(1))
	update(w, pool, func(p *clusterv1.MachinePool) { p.Annotations[clusterv1.ReplicasManagedByAnnotation] = "false" })
	eventually(w, infra, "4 machines", settled(4))
}

// Four functions are enough: a pool is made of machines, scaled, rolled to another version, and deleted.
func TestPoolOfMachines(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	pool, infra := w.newPool("c", "p", 2)
	eventually(w, infra, "2 machines", settled(2))
	if infra.Status.InfrastructureMachineKind != infrav1.HookgateMachineKind {
		t.Errorf("infrastructureMachineKind is %q", infra.Status.InfrastructureMachineKind)
	}
	machines := w.poolMachines("p")
	domains := map[string]bool{}
	for _, m := range machines {
		domains[m.Annotations[infrav1.FailureDomainAnnotation]] = true
		if o := m.OwnerReferences; len(o) != 1 || o[0].Controller != nil || o[0].Kind != infrav1.HookgateMachinePoolKind ||
			m.Labels[clusterv1.ClusterNameLabel] != "c" {
			t.Errorf("%s has owners %v and labels %v", m.Name, o, m.Labels)
		}
	}
	if len(domains) != 2 {
		t.Errorf("the failure domains are %v, want both", domains)
	}
	if r := calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)[0]; r.GetVersion() != "v1.34.0" ||
		string(r.GetBootstrap().GetData()) != "#cloud-config\n# p" || len(r.GetSubject().GetMachinePool().GetRaw()) > 0 &&
		r.GetSubject().GetClusterName() != "c" {
		t.Errorf("the request is %v", r)
	}
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](4) })
	eventually(w, infra, "4 machines", settled(4))
	// What is marked goes first.
	marked := machines[1]
	update(w, &marked, func(m *infrav1.HookgateMachine) { m.Annotations[clusterv1.DeleteMachineAnnotation] = "" })
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](3) })
	eventually(w, infra, "3 machines", settled(3))
	if slices.Contains(infra.Spec.ProviderIDList, marked.Spec.ProviderID) {
		t.Error("another machine than the marked one was removed")
	}
	// A rollout never has fewer than three machines, nor more than one too many.
	before := slices.Clone(infra.Spec.ProviderIDList)
	update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "v1.35.0" })
	w.until("rolled out", func() bool {
		if n := len(w.cloud.existing()); n < 3 || n > 4 {
			t.Fatalf("%d machines during a rollout of 3", n)
		}
		w.get(infra)
		return settled(3)(infra) && !slices.ContainsFunc(infra.Spec.ProviderIDList, func(id string) bool { return slices.Contains(before, id) })
	})
	// A machine with a Machine is removed by it, which drains its Node.
	one := w.poolMachines("p")[0]
	machine := w.machineOf(&one)
	w.delete(infra)
	eventually(w, machine, "deleted", isDeleting)
	w.until("the others are gone", func() bool { return len(w.cloud.existing()) == 1 })
	if !w.get(&one) || !one.DeletionTimestamp.IsZero() {
		t.Error("the HookgateMachine was deleted before its Machine")
	}
	w.drained(machine)
	w.gone(infra)
	if n := len(w.cloud.existing()); n != 0 {
		t.Errorf("%d machines are left", n)
	}
}

// A health check marks the Machine of a pool. Cluster API's own controller of pools does nothing about it: the provider
// removes that Machine, and no other, and makes another machine.
func TestPoolHealthCheck(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	_, infra := w.newPool("c", "p", 2)
	eventually(w, infra, "2 machines", settled(2))
	var machines []*clusterv1.Machine
	for _, m := range w.poolMachines("p") {
		machines = append(machines, w.machineOf(&m))
	}
	mark := func(m *clusterv1.Machine, kinds ...string) {
		updateStatus(w, m, func(m *clusterv1.Machine) {
			for _, kind := range kinds {
				meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
					Type: kind, Status: metav1.ConditionFalse, Reason: "Test",
				})
			}
		})
	}
	// A check that failed is not yet a wish: too many Machines may be unhealthy at once, or something else remediates.
	healthy, failed := machines[0], machines[1]
	mark(healthy, clusterv1.MachineHealthCheckSucceededCondition)
	mark(failed, clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition)
	eventually(w, failed, "deleted", isDeleting)
	w.drained(failed)
	eventually(w, infra, "2 machines again", func(p *infrav1.HookgateMachinePool) bool {
		return settled(2)(p) && len(w.cloud.existing()) == 2
	})
	if made := len(w.poolMachines("p")); made != 2 || !w.get(healthy) {
		t.Errorf("there are %d HookgateMachines, and the other Machine is there: %t", made, w.get(healthy))
	}
	if !healthy.DeletionTimestamp.IsZero() {
		t.Error("the other Machine was deleted")
	}
}

// missingFor is how long an instance must be missing from complete answers before it leaves the list.
const missingFor = 30 * time.Second

// grouped makes a pool one whose backend chooses what goes.
func grouped(p *infrav1.HookgateMachinePool) {
	p.Spec.InstanceManagement = infrav1.InstanceManagementGroup
}

// eventuallyWithin is eventually with another time to wait.
func (w *fixture) eventuallyWithin(d time.Duration, p *infrav1.HookgateMachinePool, what string, ok func(*infrav1.HookgateMachinePool) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(d); !w.get(p) || !ok(p); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: still not: %s; the list is %v, and the conditions are:\n%s", p.Name, what, p.Spec.ProviderIDList, conditionsOf(p))
		}
	}
}

// A pool that is scaled to nothing says so with a written zero, stays ready, and comes back.
func TestPoolScaledToZero(t *testing.T) {
	for name, c := range map[string]struct {
		pools  bool
		change func(*infrav1.HookgateMachinePool)
	}{
		"of-machines": {false, func(*infrav1.HookgateMachinePool) {}},
		"instances":   {true, func(*infrav1.HookgateMachinePool) {}},
		"group":       {true, grouped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(w *fixture) { w.cloud.pools = c.pools })
			w.readyCluster("c")
			pool, infra := w.newPool("c", "p", 2, c.change)
			eventually(w, infra, "2 instances", settled(2))
			update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](0) })
			// Without Machines, nothing says which instances go: they leave the list as those that are missing.
			w.eventuallyWithin(missingFor+patience, infra, "nothing", func(p *infrav1.HookgateMachinePool) bool {
				return settled(0)(p) && has(p, infrav1.SyncedCondition, metav1.ConditionTrue, "", "")
			})
			w.until("nothing is left", func() bool {
				return len(w.cloud.existing()) == 0 && len(w.cloud.instances()) == 0 && len(w.poolMachines("p")) == 0
			})
			update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](1) })
			eventually(w, infra, "1 instance", settled(1))
			w.delete(infra)
			w.gone(infra)
		})
	}
}
