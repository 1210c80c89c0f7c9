// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

func typeName(o any) string { return fmt.Sprintf("%T", o) }

// bootstrapOf returns the Secret with the bootstrap data of a Machine.
func bootstrapOf(machine string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: machine + "-bootstrap"},
		Data:       map[string][]byte{"value": []byte("#cloud-config\n# " + machine), "format": []byte("cloud-config")},
	}
}

// newCluster returns a Cluster whose infrastructure has the same name.
func newCluster(name string) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateClusterKind, Name: name,
	}
	return cluster
}

// newInfraCluster returns a HookgateCluster of a class, without an owner.
func newInfraCluster(name, class string) *infrav1.HookgateCluster {
	infra := &infrav1.HookgateCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
	}}
	infra.Spec.InfrastructureClassName = class
	return infra
}

// newMachine returns a Machine with bootstrap data, whose infrastructure has the same name.
func newMachine(cluster, name string) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
	machine.Spec.ClusterName, machine.Spec.Version = cluster, "v1.34.0"
	machine.Spec.Bootstrap.DataSecretName = new(name + "-bootstrap")
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateMachineKind, Name: name,
	}
	return machine
}

// newInfraMachine returns a HookgateMachine without an owner.
func newInfraMachine(cluster, name string) *infrav1.HookgateMachine {
	return &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
}

// own makes an object of Cluster API that exists the controller of another one.
func own(o client.Object, kind string, by client.Object) {
	o.SetOwnerReferences([]metav1.OwnerReference{owner(kind, by, true)})
}

// newCluster creates a Cluster and its HookgateCluster, as Cluster API leaves them before the infrastructure is there.
func (w *fixture) newCluster(name string, change ...func(*infrav1.HookgateCluster)) (*clusterv1.Cluster, *infrav1.HookgateCluster) {
	w.t.Helper()
	cluster, infra := newCluster(name), newInfraCluster(name, w.namespace)
	w.create(cluster)
	own(infra, "Cluster", cluster)
	for _, f := range change {
		f(infra)
	}
	w.create(infra)
	return cluster, infra
}

// readyCluster creates a Cluster whose infrastructure is provisioned.
func (w *fixture) readyCluster(name string, change ...func(*infrav1.HookgateCluster)) (*clusterv1.Cluster, *infrav1.HookgateCluster) {
	w.t.Helper()
	cluster, infra := w.newCluster(name, change...)
	eventually(w, infra, "provisioned", hasInfrastructure)
	updateStatus(w, cluster, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = new(true) })
	return cluster, infra
}

func owner(kind string, o client.Object, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: &controller,
	}
}

// newMachine creates a Machine with bootstrap data, and its HookgateMachine.
func (w *fixture) newMachine(
	cluster, name string, change ...func(*infrav1.HookgateMachine),
) (*clusterv1.Machine, *infrav1.HookgateMachine) {
	w.t.Helper()
	w.create(bootstrapOf(name))
	machine, infra := newMachine(cluster, name), newInfraMachine(cluster, name)
	w.create(machine)
	own(infra, "Machine", machine)
	for _, f := range change {
		f(infra)
	}
	w.create(infra)
	return machine, infra
}

// readyMachine creates a Machine whose infrastructure is provisioned.
func (w *fixture) readyMachine(cluster, name string) (*clusterv1.Machine, *infrav1.HookgateMachine) {
	w.t.Helper()
	machine, infra := w.newMachine(cluster, name)
	eventually(w, infra, "provisioned", isProvisioned)
	return machine, infra
}

func hasInfrastructure(c *infrav1.HookgateCluster) bool {
	return ptr.Deref(c.Status.Initialization.Provisioned, false)
}

func isProvisioned(m *infrav1.HookgateMachine) bool {
	return ptr.Deref(m.Status.Initialization.Provisioned, false)
}

// writes records the requests of the controllers that change something.
type writes struct {
	mu   sync.Mutex
	list []string
	read []string // the paths of reads
	done []string // those of list that the API server has accepted

	// held holds the events about HookgateMachines while it is locked.
	held sync.RWMutex
}

// events is the body of a watch whose events can be held.
type events struct {
	io.ReadCloser
	held *sync.RWMutex
}

func (e events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.held.RLock()
	defer e.held.RUnlock()
	return n, err
}

type watched struct {
	next   http.RoundTripper
	writes *writes
}

func (w *writes) before(next http.RoundTripper) http.RoundTripper { return watched{next, w} }

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		w.writes.mu.Lock()
		w.writes.read = append(w.writes.read, r.URL.Path)
		w.writes.mu.Unlock()
	}
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
		w.writes.mu.Lock()
		w.writes.list = append(w.writes.list, r.Method+" "+r.URL.Path)
		w.writes.mu.Unlock()
	}
	resp, err := w.next.RoundTrip(r)
	if err == nil && resp.StatusCode < http.StatusBadRequest && r.Method != http.MethodGet {
		w.writes.mu.Lock()
		w.writes.done = append(w.writes.done, r.Method+" "+r.URL.Path)
		w.writes.mu.Unlock()
	}
	if err == nil && strings.HasSuffix(r.URL.Path, "/hookgatemachines") && r.URL.Query().Has("watch") {
		resp.Body = events{resp.Body, &w.writes.held}
	}
	return resp, err
}

// reads returns how many reads there were whose paths end with a text.
func (w *writes) reads(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ending(w.read, path)
}

// accepted returns how many writes the API server has accepted whose paths end with a text.
func (w *writes) accepted(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ending(w.done, path)
}

func ending(list []string, text string) int {
	n := 0
	for _, s := range list {
		if strings.HasSuffix(s, text) {
			n++
		}
	}
	return n
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}
