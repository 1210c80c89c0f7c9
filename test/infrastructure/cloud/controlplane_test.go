// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	kcp "sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine/drain"
	"sigs.k8s.io/cluster-api/util/cache"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/index"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// connection is the part of Cluster API's cache of clusters that its control plane provider uses.
type connection struct {
	clustercache.ClusterCache // nil: the rest is not called

	config *rest.Config
	client client.Client
}

func (c *connection) GetClient(context.Context, client.ObjectKey) (client.Client, error) {
	return c.client, nil
}

func (c *connection) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return c.config, nil
}

// provider is the code with which Cluster API's control plane provider looks at a cluster and changes it.
type provider struct {
	*fixture
	kcp.WorkloadCluster

	client  client.Client
	cluster *clusterv1.Cluster
	plane   *controlplanev1.KubeadmControlPlane
}

// newProvider connects to the cluster of the fixture's network.
func newProvider(w *fixture) *provider {
	w.Helper()
	access := w.access()
	remote, err := client.New(access, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		w.Fatal(err)
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "1"}}
	key := client.ObjectKeyFromObject(cluster)
	authority := w.certificates.GetByPurpose(secret.EtcdCA).AsSecret(key, metav1.OwnerReference{})
	management := &kcp.Management{
		Client:              fake.NewClientBuilder().Build(),
		SecretCachingClient: fake.NewClientBuilder().WithObjects(authority).Build(),
		ClusterCache:        &connection{config: access, client: remote},
		EtcdDialTimeout:     5 * time.Second,
		EtcdCallTimeout:     5 * time.Second,
		EtcdLogger:          zap.NewNop(),
		ClientCertCache:     cache.New[kcp.ClientCertEntry](w.Context(), time.Hour),
	}
	workload, err := management.GetWorkloadCluster(w.Context(), cluster, "")
	if err != nil {
		w.Fatal(err)
	}
	return &provider{
		fixture: w, WorkloadCluster: workload, client: remote, cluster: cluster,
		plane: &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{
			Version: version,
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{
				ClusterConfiguration: bootstrapv1.ClusterConfiguration{ImageRepository: "registry.example/k8s"},
			},
		}},
	}
}

// look computes the conditions of these machines, whose Nodes have their names.
func (p *provider) look(names ...string) *kcp.ControlPlane {
	p.Helper()
	plane := &kcp.ControlPlane{KCP: p.plane.DeepCopy(), Cluster: p.cluster, Machines: collections.New()}
	for _, name := range names {
		plane.Machines.Insert(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1.MachineSpec{ProviderID: p.machine("key-" + name).ProviderID},
			Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
		})
	}
	p.UpdateStaticPodConditions(p.Context(), plane)
	p.UpdateEtcdConditions(p.Context(), plane)
	return plane
}

// again does a step until it succeeds, as the provider does when a call to etcd was lost.
func (p *provider) again(what string, step func() error) {
	p.Helper()
	var err error
	defer func() {
		if err != nil {
			p.Errorf("%s: %v", what, err)
		}
	}()
	p.wait(what, func() bool {
		err = step()
		return err == nil
	})
}

// healthy fails the test unless every condition of these machines becomes True, and etcd has them as members.
func (p *provider) healthy(names ...string) *kcp.ControlPlane {
	p.Helper()
	var plane *kcp.ControlPlane
	p.again("the control plane is healthy", func() error {
		plane = p.look(names...)
		return unhealthy(plane, names)
	})
	return plane
}

// leads waits until a machine leads etcd.
func (p *provider) leads(name string, machines ...string) *kcp.ControlPlane {
	p.Helper()
	var plane *kcp.ControlPlane
	p.wait(name+" leads", func() bool {
		plane = p.look(machines...)
		return plane.EtcdLeader != nil && plane.EtcdLeader.Name == name
	})
	return plane
}

// unhealthy returns what keeps a control plane from being healthy.
func unhealthy(plane *kcp.ControlPlane, names []string) error {
	var errs []error
	for _, machine := range plane.Machines {
		for _, kind := range []string{
			controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
		} {
			if !conditions.IsTrue(machine, kind) {
				errs = append(errs, fmt.Errorf("machine %s: %+v", machine.Name, conditions.Get(machine, kind)))
			}
		}
	}
	for _, kind := range []string{
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition,
		controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition,
	} {
		if !conditions.IsTrue(plane.KCP, kind) {
			errs = append(errs, fmt.Errorf("control plane: %+v", conditions.Get(plane.KCP, kind)))
		}
	}
	if got := members(plane); !slices.Equal(got, names) || !plane.EtcdMembersAndMachinesAreMatching {
		errs = append(errs, fmt.Errorf("etcd has %v, want %v", got, names))
	}
	if plane.EtcdLeader == nil {
		errs = append(errs, errors.New("etcd has no leader"))
	}
	return errors.Join(errs...)
}

// members returns the names of etcd's members in order.
func members(plane *kcp.ControlPlane) []string {
	var names []string
	for _, member := range plane.EtcdMembers {
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names
}

// TestControlPlane runs the code of Cluster API's control plane provider against a cluster of this cloud: from one
// machine to three, an upgrade, and the removal of the leader.
func TestControlPlane(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	p := newProvider(w)
	if has, err := p.HasKubeadmConfig(t.Context()); err != nil || !has {
		t.Fatalf("HasKubeadmConfig: %t, %v", has, err)
	}
	p.healthy("cp-0")
	for _, name := range []string{"cp-1", "cp-2"} {
		w.must(http.MethodPut, "/machines/key-"+name, api.MachineSpec{
			Network: "net", Name: name, ControlPlane: true, Version: version, Bootstrap: w.controlPlaneData(token),
		}, nil)
		w.waitMachine("key-"+name, api.Running)
	}
	plane := p.healthy("cp-0", "cp-1", "cp-2")
	w.must(http.MethodGet, "/networks/net", nil, &w.network)
	if w.network.APIServers != 3 || !w.network.Initialized {
		t.Errorf("network: %+v", w.network)
	}
	p.checkExpiry("cp-1")
	p.checkDrain("cp-1")
	p.checkUpgrade(clients)
	p.checkRemoval(clients, plane)
}

// checkExpiry looks for the certificate of an API server as the provider does, to replace it in time.
func (p *provider) checkExpiry(node string) {
	p.Helper()
	expires, err := p.GetAPIServerCertificateExpiry(p.Context(), &bootstrapv1.KubeadmConfig{}, node)
	if err != nil || time.Until(*expires) < 24*time.Hour {
		p.Errorf("GetAPIServerCertificateExpiry: %v, %v", expires, err)
	}
}

// checkDrain looks for Pods to evict as core does before it deletes a machine. There are none: API servers of this cloud
// cannot evict.
func (p *provider) checkDrain(node string) {
	p.Helper()
	drains := runtime.NewScheme()
	if err := clusterv1.AddToScheme(drains); err != nil {
		p.Fatal(err)
	}
	helper := &drain.Helper{
		Client: fake.NewClientBuilder().WithScheme(drains).Build(), RemoteClient: p.client,
	}
	pods, err := helper.GetPodsForEviction(p.Context(), p.cluster, &clusterv1.Machine{}, node)
	if err != nil || len(pods.Pods()) != 0 {
		p.Errorf("GetPodsForEviction: %v, %v", pods, err)
	}
}

// checkUpgrade does what the provider does to a cluster before it replaces its machines.
func (p *provider) checkUpgrade(clients kubernetes.Interface) {
	p.Helper()
	ctx := p.Context()
	next := semver.MustParse("1.37.0")
	p.plane.Spec.Version = "v" + next.String()
	for what, err := range map[string]error{
		"EnsureKubeadmPermissions": p.EnsureKubeadmPermissions(ctx, next),
		"UpdateClusterConfiguration": p.UpdateClusterConfiguration(ctx, next,
			p.UpdateImageRepositoryInKubeadmConfigMap("registry.example/k8s"),
			p.UpdateFeatureGatesInKubeadmConfigMap(p.plane.Spec.KubeadmConfigSpec, next),
			p.UpdateEtcdLocalInKubeadmConfigMap(bootstrapv1.LocalEtcd{})),
		"UpdateKubeProxyImageInfo": p.UpdateKubeProxyImageInfo(ctx, p.plane),
	} {
		if err != nil {
			p.Errorf("%s: %v", what, err)
		}
	}
	p.plane.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository = "" // CoreDNS stays as it is
	if err := p.UpdateCoreDNS(ctx, p.plane); err != nil {
		p.Errorf("UpdateCoreDNS: %v", err)
	}
	config, err := clients.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	text := config.Data["ClusterConfiguration"]
	for _, want := range []string{
		"kubernetesVersion: v1.37.0", "imageRepository: registry.example/k8s", "controlPlaneEndpoint: " + p.endpoint(),
	} {
		if !strings.Contains(text, want) {
			p.Errorf("kubeadm-config lacks %q:\n%s", want, text)
		}
	}
	proxy := &appsv1.DaemonSet{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}, proxy); err != nil {
		p.Fatal(err)
	}
	if image := proxy.Spec.Template.Spec.Containers[0].Image; image != "registry.example/k8s/kube-proxy:v1.37.0" {
		p.Errorf("kube-proxy is %s", image)
	}
}

// checkRemoval removes the leader of etcd and its machine, as the provider and then Cluster API's core do.
func (p *provider) checkRemoval(clients kubernetes.Interface, plane *kcp.ControlPlane) {
	p.Helper()
	ctx, leaving := p.Context(), plane.EtcdLeader
	var staying []string
	for _, name := range members(plane) {
		if name != leaving.Name {
			staying = append(staying, name)
		}
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // leadership is dated in seconds
	p.again("ForwardEtcdLeadership", func() error { return p.ForwardEtcdLeadership(ctx, leaving.Name, staying[0]) })
	p.leads(staying[0], staying...)
	p.again("RemoveEtcdMember", func() error {
		return p.RemoveEtcdMember(ctx, &etcd.Member{ID: leaving.ID, Name: leaving.Name}, plane.Nodes)
	})
	p.must(http.MethodDelete, "/machines/key-"+leaving.Name, nil, nil)
	p.gone("/machines/key-" + leaving.Name)
	if node := p.node(clients, leaving.Name); isReady(node) {
		p.Errorf("the Node of a machine that is gone is ready")
	}
	if err := clients.CoreV1().Nodes().Delete(ctx, leaving.Name, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	p.wait("the Pods of the Node are gone", func() bool {
		_, err := clients.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, "etcd-"+leaving.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	p.healthy(staying...)
}

// TestLeaderLost takes away the machine of etcd's leader, and has another member lead.
func TestLeaderLost(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	w.must(http.MethodPut, "/machines/key-cp-1", api.MachineSpec{
		Network: "net", Name: "cp-1", ControlPlane: true, Version: version, Bootstrap: w.controlPlaneData(token),
	}, nil)
	w.waitMachine("key-cp-1", api.Running)
	p := newProvider(w)
	if leader := p.healthy("cp-0", "cp-1").EtcdLeader; leader.Name != "cp-0" {
		t.Fatalf("the leader is %s", leader.Name)
	}
	provider := w.machine("key-cp-0").ProviderID
	w.must(http.MethodPost, "/machines/key-cp-0/vanish", nil, nil)
	w.gone("/machines/key-cp-0")
	if node := w.node(clients, "cp-0"); isReady(node) || node.Spec.ProviderID != provider {
		t.Errorf("the Node that stays is %+v", node)
	}
	plane := p.leads("cp-1", "cp-1")
	// The lost member is still one, until the provider removes it.
	if got := members(plane); !slices.Equal(got, []string{"cp-0", "cp-1"}) {
		t.Fatalf("etcd has %v", got)
	}
	for _, member := range plane.EtcdMembers {
		if member.Name != "cp-0" {
			continue
		}
		p.again("RemoveEtcdMember", func() error { return p.RemoveEtcdMember(t.Context(), member, plane.Nodes) })
	}
	w.wait("the member is gone", func() bool { return slices.Equal(members(p.look("cp-1")), []string{"cp-1"}) })
	if counts := w.counts(); counts.Machines != (api.Tally{Exist: 1, Created: 2, Vanished: 1, Peak: 2}) {
		t.Errorf("machines: %+v", counts.Machines)
	}
}

// TestNodes reads Nodes as Cluster API's core does: through a cache with an index by provider ID; and writes them as
// it does.
func TestNodes(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	access := w.access()
	nodes, err := ctrlcache.New(access, ctrlcache.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := nodes.IndexField(ctx, &corev1.Node{}, index.NodeProviderIDField, index.NodeByProviderID); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- nodes.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !nodes.WaitForCacheSync(ctx) {
		t.Fatal("no cache")
	}
	find := func(providerID string) []corev1.Node {
		list := &corev1.NodeList{}
		if err := nodes.List(ctx, list, client.MatchingFields{index.NodeProviderIDField: providerID}); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	first := w.machine("key-cp-0")
	if found := find(first.ProviderID); len(found) != 1 || found[0].Name != "cp-0" {
		t.Fatalf("%s: %v", first.ProviderID, found)
	}
	w.must(http.MethodPut, "/machines/worker", w.worker("worker-0"), nil) // after the list: a watch has it
	worker := w.waitMachine("worker", api.Running)
	w.wait("the cache has the worker", func() bool { return len(find(worker.ProviderID)) == 1 })
	node := find(worker.ProviderID)[0]
	if node.UID == "" || !isReady(&node) || node.Status.NodeInfo.KubeletVersion != version {
		t.Errorf("node: %+v", node)
	}
	if !slices.Contains(node.Spec.Taints, clusterv1.NodeUninitializedTaint) {
		t.Fatalf("taints: %v", node.Spec.Taints)
	}

	// Core removes the taint with a strategic merge patch and the resource version.
	remote, err := client.New(access, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	changed := node.DeepCopy()
	changed.Spec.Taints = nil
	changed.Labels[clusterv1.NodeRoleLabelPrefix+"/worker"] = ""
	patch := client.StrategicMergeFrom(&node, client.MergeFromWithOptimisticLock{})
	if err := remote.Patch(ctx, changed, patch); err != nil {
		t.Fatal(err)
	}
	w.wait("the cache has the patch", func() bool { return len(find(worker.ProviderID)[0].Spec.Taints) == 0 })
	if err := remote.Patch(ctx, changed.DeepCopy(), patch); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}

	w.must(http.MethodPatch, "/machines/worker", api.MachineChange{Version: "v1.37.0", Ready: "Unknown"}, nil)
	w.wait("the cache has the change", func() bool {
		node := find(worker.ProviderID)[0]
		return node.Status.NodeInfo.KubeletVersion == "v1.37.0" && !isReady(&node)
	})
	w.must(http.MethodPatch, "/machines/worker", api.MachineChange{Ready: "True"}, nil)
	w.wait("the Node is ready", func() bool { return isReady(&find(worker.ProviderID)[0]) })

	if err := remote.Delete(ctx, changed); err != nil {
		t.Fatal(err)
	}
	w.wait("the cache lost the Node", func() bool { return len(find(worker.ProviderID)) == 0 })
}

// TestOldKubeadm boots machines whose kubeadm has the API v1beta3, where the kubelet's arguments are a map.
func TestOldKubeadm(t *testing.T) {
	w := newFixture(t, Config{})
	w.version = semver.MustParse("1.30.2")
	clients := w.startCluster()
	spec := w.worker("worker-0")
	spec.Version = "v1.30.2"
	w.must(http.MethodPut, "/machines/worker", spec, nil)
	machine := w.waitMachine("worker", api.Running)
	for _, name := range []string{"cp-0", "worker-0"} {
		node := w.node(clients, name)
		if node.Status.NodeInfo.KubeletVersion != "v1.30.2" || !strings.HasPrefix(node.Spec.ProviderID, "fake:///i-") {
			t.Errorf("node: %+v", node)
		}
	}
	if got := w.node(clients, "worker-0").Spec.ProviderID; got != machine.ProviderID {
		t.Errorf("provider ID %s, want %s", got, machine.ProviderID)
	}
}

// TestProviderID has the kubelet's argument win over what the cloud sets.
func TestProviderID(t *testing.T) {
	w := newFixture(t, Config{})
	clients := w.startCluster()
	for name, row := range map[string]struct {
		change func(*bootstrapv1.JoinConfiguration)
		want   func(api.Machine) string
	}{
		"template": {want: func(m api.Machine) string { return m.ProviderID }},
		"absent": {
			change: func(j *bootstrapv1.JoinConfiguration) { j.NodeRegistration.KubeletExtraArgs = nil },
			want:   func(m api.Machine) string { return m.ProviderID },
		},
		"another": {
			change: func(j *bootstrapv1.JoinConfiguration) {
				j.NodeRegistration.KubeletExtraArgs = []bootstrapv1.Arg{{Name: "provider-id", Value: new("other://1")}}
			},
			want: func(api.Machine) string { return "other://1" },
		},
	} {
		spec := w.worker(name)
		spec.Bootstrap = w.workerData(token, row.change)
		w.must(http.MethodPut, "/machines/"+name, spec, nil)
		machine := w.waitMachine(name, api.Running)
		if machine.ProviderID != fmt.Sprintf("fake:///%s", machine.ID) {
			t.Errorf("%s: the cloud says %s", name, machine.ProviderID)
		}
		if got, want := w.node(clients, name).Spec.ProviderID, row.want(machine); got != want {
			t.Errorf("%s: provider ID %s, want %s", name, got, want)
		}
	}
}

// TestSameNode refuses a second machine with the name and the kubelet's provider ID of one that runs.
func TestSameNode(t *testing.T) {
	w := newFixture(t, Config{JoinTimeout: 100 * time.Millisecond})
	w.startCluster()
	spec := w.worker("same")
	spec.Bootstrap = w.workerData(token, func(j *bootstrapv1.JoinConfiguration) {
		j.NodeRegistration.KubeletExtraArgs = []bootstrapv1.Arg{{Name: "provider-id", Value: new("other://1")}}
	})
	w.must(http.MethodPut, "/machines/one", spec, nil)
	w.waitMachine("one", api.Running)
	w.must(http.MethodPut, "/machines/two", spec, nil)
	if machine := w.waitMachine("two", api.Failed); machine.Message != "the cluster has a Node same that is ready" {
		t.Errorf("machine: %+v", machine)
	}
}
