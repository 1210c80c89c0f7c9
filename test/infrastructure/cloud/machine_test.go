// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// TestIdempotence makes machines twice, in each of the ways.
func TestIdempotence(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	put := func(spec api.MachineSpec) api.Machine {
		var m api.Machine
		w.must(http.MethodPut, "/machines/key", spec, &m)
		return m
	}
	first := put(w.worker("one"))
	if again := put(w.worker("one")); again.ID != first.ID {
		t.Errorf("PUT made %s and %s", first.ID, again.ID)
	}
	if again := put(api.MachineSpec{Network: "net", Name: "one"}); again.ID != first.ID { // once it is there
		t.Errorf("PUT without bootstrap data made %s and %s", first.ID, again.ID)
	}
	if got := w.machine(first.ID); got.Key != "key" {
		t.Errorf("by its ID: %+v", got)
	}
	w.refused(api.Conflict, http.MethodPut, "/machines/key", w.worker("another"))

	post := func(spec api.MachineSpec) api.Machine {
		var m api.Machine
		w.must(http.MethodPost, "/machines", spec, &m)
		return m
	}
	spec := w.worker("two")
	spec.Tags = map[string]string{"external-id": "x"}
	if a, b := post(spec), post(spec); a.ID == b.ID {
		t.Errorf("POST made %s twice", a.ID)
	}
	var list api.MachineList
	w.must(http.MethodGet, "/machines?network=net&tag=external-id%3Dx", nil, &list)
	if list.Count != 2 || len(list.Items) != 2 {
		t.Errorf("with the tag: %+v", list)
	}
	w.must(http.MethodGet, "/machines?tag=external-id%3Dx&tag=color%3Dred", nil, &list)
	if list.Count != 0 || len(list.Items) != 0 {
		t.Errorf("with both tags: %+v", list)
	}
	spec = w.worker("three")
	spec.ClientToken = "once"
	if a, b := post(spec), post(spec); a.ID != b.ID {
		t.Errorf("POST with a token made %s and %s", a.ID, b.ID)
	}
	spec.Name = "four"
	w.refused(api.Conflict, http.MethodPost, "/machines", spec)

	counts := w.counts()
	if counts.Machines != (api.Tally{Exist: 5, Created: 5, Peak: 5}) {
		t.Errorf("machines: %+v", counts.Machines)
	}
	if len(counts.Repeated) != 1 || counts.Repeated["net/two"] != 2 {
		t.Errorf("repeated: %v", counts.Repeated)
	}
	if got := counts.Requests["PUT /machines/{id}"]; got != 5 {
		t.Errorf("requests: %v", counts.Requests)
	}
}

// TestMachineAgain deletes a machine and makes one with its key: another machine, which the counts show.
func TestMachineAgain(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	w.must(http.MethodPut, "/faults", api.Faults{DeletionDelay: "1h"}, nil)
	w.must(http.MethodPut, "/machines/key", w.worker("one"), nil)
	first := w.waitMachine("key", api.Running)
	w.must(http.MethodDelete, "/machines/key", nil, nil)
	w.must(http.MethodDelete, "/machines/key", nil, nil)
	w.refused(api.Conflict, http.MethodPut, "/machines/key", w.worker("one"))
	w.refused(api.Conflict, http.MethodPatch, "/machines/key", api.MachineChange{Ready: "True"})
	if got := w.machine("key").State; got != api.Deleting {
		t.Errorf("state %s", got)
	}
	w.must(http.MethodDelete, "/faults", nil, nil)
	w.gone("/machines/key")
	w.refused(api.NotFound, http.MethodDelete, "/machines/key", nil)
	w.must(http.MethodPut, "/machines/key", w.worker("one"), nil) // its old Node is not ready, so it may join
	if second := w.waitMachine("key", api.Running); second.ProviderID == first.ProviderID {
		t.Errorf("%s again", second.ProviderID)
	}
	counts := w.counts()
	if counts.Repeated["key"] != 2 || counts.Machines != (api.Tally{Exist: 2, Created: 3, Deleted: 1, Peak: 2}) {
		t.Errorf("counts: %+v", counts)
	}
}

// TestTokens joins with bootstrap tokens that are not current.
func TestTokens(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: 300 * time.Millisecond})
	clients := w.startCluster()
	const expired = "expire.0123456789abcdef"
	w.createToken(clients, expired, time.Now().Add(-time.Minute))
	for name, row := range map[string]struct{ token, want string }{
		"missing": {"nowher.0123456789abcdef", "the cluster has no bootstrap token nowher"},
		"wrong":   {"abcdef.fedcba9876543210", "the secret of bootstrap token abcdef is another"},
		"expired": {expired, "bootstrap token expire has expired"},
		"garbage": {"abcdef", "the bootstrap token is not of the form id.secret"},
	} {
		spec := w.worker(name)
		spec.Bootstrap = w.workerData(row.token, nil)
		w.must(http.MethodPut, "/machines/"+name, spec, nil)
		machine := w.waitMachine(name, api.Failed)
		if machine.Reason != api.JoinFailed || machine.Message != row.want || machine.Node != "" {
			t.Errorf("%s: %+v", name, machine)
		}
	}
	// Tokens of machines that joined do not matter any more.
	w.must(http.MethodPut, "/machines/good", w.worker("good"), nil)
	w.waitMachine("good", api.Running)
	secrets := clients.CoreV1().Secrets(metav1.NamespaceSystem)
	if err := secrets.Delete(t.Context(), "bootstrap-token-abcdef", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.must(http.MethodPut, "/machines/late", w.worker("late"), nil)
	w.waitMachine("late", api.Failed)
	if got := w.machine("good").State; got != api.Running {
		t.Errorf("the machine that joined is %s", got)
	}
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
}

// TestTokenComes has a machine join once its token is there.
func TestTokenComes(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: time.Minute})
	clients := w.startCluster()
	const late = "comes0.0123456789abcdef"
	spec := w.worker("patient")
	spec.Bootstrap = w.workerData(late, nil)
	w.must(http.MethodPut, "/machines/patient", spec, nil)
	w.wait("it says why it waits", func() bool {
		m := w.machine("patient")
		return m.State == api.Provisioning && m.Message == "the cluster has no bootstrap token comes0"
	})
	w.createToken(clients, late, time.Now().Add(time.Hour))
	if m := w.waitMachine("patient", api.Running); m.Message != "" || m.Node != "patient" {
		t.Errorf("machine: %+v", m)
	}
}

// TestBoot boots machines with bootstrap data that cannot work.
func TestBoot(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: 300 * time.Millisecond})
	clients := w.startCluster()
	replace := func(b *api.Bootstrap, pairs ...string) *api.Bootstrap {
		return &api.Bootstrap{Data: []byte(strings.NewReplacer(pairs...).Replace(string(b.Data))), Format: b.Format}
	}
	for name, row := range map[string]struct {
		bootstrap    *api.Bootstrap
		controlPlane bool
		want         string
	}{
		"init-again":  {w.initData(), true, "kubeadm init in a network that has a cluster"},
		"init-worker": {w.initData(), false, "kubeadm init on a machine that the load balancer does not have"},
		"role": {
			w.workerData(token, nil), true, "the bootstrap data is of a machine of the other role",
		},
		"endpoint": {
			w.workerData(token, func(j *bootstrapv1.JoinConfiguration) {
				j.Discovery.BootstrapToken.APIServerEndpoint = "127.0.0.1:1"
			}), false, `kubeadm's apiServerEndpoint is "127.0.0.1:1"`,
		},
		"hash": {
			w.workerData(token, func(j *bootstrapv1.JoinConfiguration) {
				j.Discovery.BootstrapToken.CACertHashes = []string{"sha256:00"}
			}), false, "kubeadm's caCertHashes do not have the cluster's authority",
		},
		"template": {
			replace(w.workerData(token, nil), "ds.meta_data.instance_id", "ds.meta_data.region"), false,
			`the template's expression "ds.meta_data.region" is not known`,
		},
		"command": {replace(w.workerData(token, nil), "kubeadm join", "true"), false, "no command runs kubeadm init"},
		"file": {
			replace(w.workerData(token, nil), "kubeadm join --config /run/", "kubeadm join --config /tmp/"), false,
			"kubeadm reads /tmp/kubeadm/kubeadm-join-config.yaml, which is not among the files",
		},
		"yaml":   {&api.Bootstrap{Data: []byte("#cloud-config\nwrite_files: [")}, false, "cloud-config: "},
		"format": {&api.Bootstrap{Data: []byte("x"), Format: "butane"}, false, `format "butane" is not known`},
		"no-ca": {
			replace(w.controlPlaneData(token), "/etc/kubernetes/pki/ca.key", "/dev/null"), true,
			"/etc/kubernetes/pki/ca.key is not among the files",
		},
	} {
		spec := api.MachineSpec{
			Network: "net", Name: name, ControlPlane: row.controlPlane, Version: version, Bootstrap: row.bootstrap,
		}
		w.must(http.MethodPut, "/machines/"+name, spec, nil)
		machine := w.waitMachine(name, api.Failed)
		if machine.Reason != api.BootstrapFailed || !strings.Contains(machine.Message, row.want) {
			t.Errorf("%s: %s: %s; want %q", name, machine.Reason, machine.Message, row.want)
		}
	}
	w.handed = newCertificates() // another cluster's
	spec := api.MachineSpec{
		Network: "net", Name: "stranger", ControlPlane: true, Version: version, Bootstrap: w.controlPlaneData(token),
	}
	w.must(http.MethodPut, "/machines/stranger", spec, nil)
	stranger := w.waitMachine("stranger", api.Failed)
	if stranger.Reason != api.BootstrapFailed || stranger.Message != "/etc/kubernetes/pki/ca.crt is not the cluster's" {
		t.Errorf("stranger: %+v", stranger)
	}
	spec = w.worker("cp-0") // the name of a Node that is ready
	w.must(http.MethodPut, "/machines/same", spec, nil)
	machine := w.waitMachine("same", api.Failed)
	if machine.Reason != api.JoinFailed || machine.Message != "the cluster has a Node cp-0 that is ready" {
		t.Errorf("same: %+v", machine)
	}
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
}

// TestFirstBoot starts a cluster with bootstrap data that cannot work, which leaves the network as it was.
func TestFirstBoot(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: 100 * time.Millisecond})
	good := string(w.initData().Data)
	certificates := w.certificates
	w.certificates = nil
	bare := string(w.initData().Data)
	w.certificates = certificates
	for name, row := range map[string]struct{ data, reason, want string }{
		"join-first": {string(w.workerData(token, nil).Data), api.JoinFailed, "no API server answers"},
		"endpoint": {
			strings.ReplaceAll(good, w.endpoint(), "127.0.0.1:1"), api.BootstrapFailed,
			`kubeadm's controlPlaneEndpoint is "127.0.0.1:1"`,
		},
		"certificates": {bare, api.BootstrapFailed, "/etc/kubernetes/pki/ca.crt is not among the files"},
		"etcd": {
			strings.ReplaceAll(good, "/pki/etcd/ca.crt", "/pki/etcd/old.crt"), api.BootstrapFailed,
			"/etc/kubernetes/pki/etcd/ca.crt is not among the files",
		},
		"documents": {strings.ReplaceAll(good, "kind: ClusterConfiguration", "kind: Other"), api.BootstrapFailed,
			"kubeadm's configuration has no ClusterConfiguration"},
	} {
		spec := api.MachineSpec{
			Network: "net", Name: name, ControlPlane: name != "join-first", Version: version,
			Bootstrap: &api.Bootstrap{Data: []byte(row.data)},
		}
		w.must(http.MethodPut, "/machines/"+name, spec, nil)
		machine := w.waitMachine(name, api.Failed)
		if machine.Reason != row.reason || !strings.Contains(machine.Message, row.want) {
			t.Errorf("%s: %s: %s; want %q", name, machine.Reason, machine.Message, row.want)
		}
	}
	w.must(http.MethodGet, "/networks/net", nil, &w.network)
	if w.network.Initialized || w.network.APIServers != 0 {
		t.Errorf("network: %+v", w.network)
	}
	w.refused(api.Conflict, http.MethodGet, "/networks/net/kubeconfig", nil)
	w.startCluster()
}

// TestEmpty deletes everything in the order that the cloud wants, and finds nothing left.
func TestEmpty(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	group := api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 2, Revision: "1", Version: version, Bootstrap: w.workerData(token, nil),
	}
	w.must(http.MethodPut, "/groups/pool", group, nil)
	w.must(http.MethodPut, "/machines/worker", w.worker("worker"), nil)
	w.waitMachine("worker", api.Running)
	w.refused(api.Conflict, http.MethodDelete, "/networks/net", nil)
	w.must(http.MethodDelete, "/groups/pool", nil, nil)
	w.must(http.MethodDelete, "/machines/worker", nil, nil)
	w.must(http.MethodDelete, "/machines/key-cp-0", nil, nil)
	for _, path := range []string{"/groups/pool", "/machines/worker", "/machines/key-cp-0"} {
		w.gone(path)
		w.refused(api.NotFound, http.MethodDelete, path, nil)
	}
	w.must(http.MethodGet, "/networks/net", nil, &w.network)
	if w.network.APIServers != 0 || !w.network.Initialized {
		t.Errorf("network: %+v", w.network)
	}
	w.must(http.MethodDelete, "/networks/net", nil, nil)
	w.gone("/networks/net")
	if connection, err := net.Dial("tcp", w.endpoint()); err == nil {
		connection.Close()
		t.Errorf("%s still answers", w.endpoint())
	}
	counts := w.counts()
	if counts.Networks != (api.Tally{Created: 1, Deleted: 1, Peak: 1}) ||
		counts.Groups != (api.Tally{Created: 1, Deleted: 1, Peak: 1}) ||
		counts.Machines != (api.Tally{Created: 4, Deleted: 4, Peak: 4}) || len(counts.Repeated) != 0 {
		t.Errorf("counts: %+v", counts)
	}
	var events api.EventList
	w.must(http.MethodGet, "/events", nil, &events)
	var last api.EventList
	w.must(http.MethodGet, "/events?after="+strconv.Itoa(len(events.Items)-1), nil, &last)
	if len(last.Items) != 1 || last.Items[0].Kind != kindNetwork || last.Items[0].Verb != verbDelete {
		t.Errorf("the last event: %+v", last)
	}
}

// TestEndpoint asks for a port, and then for one that is taken.
func TestEndpoint(t *testing.T) {
	w := newFixture(t, Config{})
	taken := *w.network.Endpoint
	w.must(http.MethodPut, "/networks/second", api.NetworkSpec{Endpoint: &taken}, nil)
	w.wait("the second network fails", func() bool {
		var n api.Network
		w.must(http.MethodGet, "/networks/second", nil, &n)
		return n.State == api.Failed && n.Endpoint == nil
	})
	w.must(http.MethodDelete, "/networks/net", nil, nil)
	w.gone("/networks/net")
	w.must(http.MethodPut, "/networks/third", api.NetworkSpec{Endpoint: &taken}, nil)
	w.wait("the third network has the port", func() bool {
		var n api.Network
		w.must(http.MethodGet, "/networks/third", nil, &n)
		return n.State == api.Running && n.Endpoint.Port == taken.Port
	})
}

// TestLabels has a Node with what kubeadm and the kubelet were told.
func TestLabels(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	spec := w.worker("labelled")
	spec.FailureDomain = "fd-2"
	spec.Bootstrap = w.workerData(token, func(j *bootstrapv1.JoinConfiguration) {
		j.NodeRegistration.Name = "renamed"
		j.NodeRegistration.KubeletExtraArgs = append(j.NodeRegistration.KubeletExtraArgs,
			bootstrapv1.Arg{Name: "node-labels", Value: new("a=b,c/d=")})
	})
	w.must(http.MethodPut, "/machines/labelled", spec, nil)
	if m := w.waitMachine("labelled", api.Running); m.Node != "renamed" || m.FailureDomain != "fd-2" {
		t.Errorf("machine: %+v", m)
	}
	node := w.node(clients, "renamed")
	if node.Labels["a"] != "b" || node.Labels[corev1.LabelTopologyZone] != "fd-2" {
		t.Errorf("labels: %v", node.Labels)
	}
	if _, ok := node.Labels["c/d"]; !ok || len(node.Status.Addresses) != 2 {
		t.Errorf("node: %+v", node)
	}
}
