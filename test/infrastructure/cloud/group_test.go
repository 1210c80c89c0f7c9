// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// put changes the group and returns it once it has its size.
func (w *fixture) putGroup(spec api.GroupSpec) api.Group {
	w.Helper()
	var g api.Group
	w.must(http.MethodPut, "/groups/pool", spec, &g)
	w.wait("the group runs", func() bool {
		w.must(http.MethodGet, "/groups/pool", nil, &g)
		if g.State == api.Failed {
			w.Fatalf("group: %+v", g)
		}
		return g.State == api.Running
	})
	return g
}

// checkNodes fails the test unless each instance has a Node with its provider ID and version that is ready.
func (w *fixture) checkNodes(clients kubernetes.Interface, g api.Group) {
	w.Helper()
	if g.InstanceCount != g.Replicas || len(g.Instances) != g.Replicas {
		w.Errorf("%d of %d instances, and %d in the list", g.InstanceCount, g.Replicas, len(g.Instances))
	}
	for _, instance := range g.Instances {
		node := w.node(clients, instance.Node)
		if node.Spec.ProviderID != instance.ProviderID || !isReady(node) ||
			node.Status.NodeInfo.KubeletVersion != instance.Version {
			w.Errorf("instance %+v has the Node %+v", instance, node)
		}
	}
}

// TestGroup takes a group from 2 to 4 to 2, upgrades it one by one, and takes it to 0.
func TestGroup(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	spec := api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 2, Revision: "a", Version: version, Bootstrap: w.workerData(token, nil),
		FailureDomains: []string{"fd-1", "fd-3"},
	}
	g := w.putGroup(spec)
	w.checkNodes(clients, g)
	if a, b := g.Instances[0].FailureDomain, g.Instances[1].FailureDomain; a == b || a == "fd-2" || b == "fd-2" {
		t.Errorf("failure domains: %s, %s", a, b)
	}
	spec.Bootstrap = nil // the group has it
	spec.Replicas = 4
	g = w.putGroup(spec)
	w.checkNodes(clients, g)

	// Fewer replicas alone take nothing away.
	spec.Replicas = 2
	var surplus api.Group
	w.must(http.MethodPut, "/groups/pool", spec, &surplus)
	if surplus.InstanceCount != 4 || surplus.State != api.Provisioning {
		t.Errorf("with a surplus: %d, %s", surplus.InstanceCount, surplus.State)
	}
	spec.Remove = []string{g.Instances[1].ProviderID, g.Instances[2].ProviderID, "fake:///i-unknown"}
	kept := []string{g.Instances[0].ProviderID, g.Instances[3].ProviderID}
	g = w.putGroup(spec)
	w.checkNodes(clients, g)
	if got := []string{g.Instances[0].ProviderID, g.Instances[1].ProviderID}; !slices.Equal(got, kept) {
		t.Errorf("kept %v, want %v", got, kept)
	}
	g = w.putGroup(spec) // the same again removes no more
	w.checkNodes(clients, g)

	// An upgrade: one of the new revision, then one old less.
	for _, old := range kept {
		spec.Revision, spec.Version, spec.Replicas, spec.Remove = "b", "v1.37.0", 3, nil
		spec.Bootstrap = w.workerData(token, nil)
		w.putGroup(spec)
		spec.Replicas, spec.Remove = 2, []string{old}
		g = w.putGroup(spec)
	}
	w.checkNodes(clients, g)
	for _, instance := range g.Instances {
		if instance.Revision != "b" || instance.Version != "v1.37.0" || instance.Group != "pool" {
			t.Errorf("after the upgrade: %+v", instance)
		}
	}
	counts := w.counts()
	if counts.Machines != (api.Tally{Exist: 3, Created: 7, Deleted: 4, Peak: 5}) { // one is the control plane
		t.Errorf("machines: %+v", counts.Machines)
	}
	spec.Replicas, spec.Remove = 0, []string{g.Instances[0].ProviderID, g.Instances[1].ProviderID}
	if g = w.putGroup(spec); len(g.Instances) != 0 {
		t.Errorf("at 0: %+v", g)
	}
	// Nodes are Cluster API's to delete.
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 7 {
		t.Errorf("%d nodes, %v", len(nodes.Items), err)
	}
}

// TestGroupVanish has the group replace an instance whose host failed.
func TestGroupVanish(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	spec := api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 2, Revision: "a", Version: version, Bootstrap: w.workerData(token, nil),
	}
	g := w.putGroup(spec)
	lost := g.Instances[0]
	w.must(http.MethodPost, "/machines/"+lost.ID+"/vanish", nil, nil)
	w.wait("another instance runs", func() bool {
		w.must(http.MethodGet, "/groups/pool", nil, &g)
		return g.State == api.Running
	})
	w.checkNodes(clients, g)
	for _, instance := range g.Instances {
		if instance.ID == lost.ID {
			t.Errorf("%s is back", lost.ID)
		}
	}
	if node := w.node(clients, lost.Node); isReady(node) {
		t.Error("the Node of the lost instance is ready")
	}
}

// TestGroupToken rotates the bootstrap token: instances to come join with the new one, and those that are there stay.
func TestGroupToken(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: 300 * time.Millisecond})
	clients := w.startCluster()
	spec := api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 1, Revision: "a", Version: version, Bootstrap: w.workerData(token, nil),
	}
	g := w.putGroup(spec)
	first := g.Instances[0].ID
	secrets := clients.CoreV1().Secrets(metav1.NamespaceSystem)
	if err := secrets.Delete(t.Context(), "bootstrap-token-abcdef", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	spec.Replicas = 2
	w.must(http.MethodPut, "/groups/pool", spec, &g) // with the old token
	stale := g.Instances[1].ID
	w.waitMachine(stale, api.Failed)

	const rotated = "rotate.0123456789abcdef"
	w.createToken(clients, rotated, time.Now().Add(time.Hour))
	spec.Bootstrap, spec.Remove = w.workerData(rotated, nil), []string{w.machine(stale).ProviderID}
	g = w.putGroup(spec)
	w.checkNodes(clients, g)
	if g.Instances[0].ID != first {
		t.Errorf("instance %s was replaced", first)
	}
}

// TestGroupQuota has a group that cannot have its size yet.
func TestGroupQuota(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	w.must(http.MethodPut, "/faults", api.Faults{Quota: new(2)}, nil)
	spec := api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 2, Revision: "a", Version: version, Bootstrap: w.workerData(token, nil),
	}
	var g api.Group
	w.must(http.MethodPut, "/groups/pool", spec, &g)
	if g.State != api.Failed || g.Reason != api.QuotaExceeded || g.InstanceCount != 1 {
		t.Errorf("group: %+v", g)
	}
	w.must(http.MethodDelete, "/faults", nil, nil)
	w.wait("the group runs", func() bool {
		w.must(http.MethodGet, "/groups/pool", nil, &g)
		return g.State == api.Running && g.InstanceCount == 2
	})
}
