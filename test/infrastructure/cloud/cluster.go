// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// corefile is what kubeadm configures CoreDNS with, but for what does not matter here.
const corefile = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
`

// create stores an object of the cluster, with a UID. One that is there stays as it is.
func (c *Cloud) create(ctx context.Context, n *network, object client.Object) error {
	object.SetUID(types.UID(newID("uid")))
	err := c.store(n).Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// createCluster makes what kubeadm init leaves in a cluster.
func (c *Cloud) createCluster(ctx context.Context, n *network, configuration, version string) error {
	system := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
	}
	const getNodes = "kubeadm:get-nodes"
	image := "registry.k8s.io/kube-proxy:" + strings.ReplaceAll(version, "+", "_")
	objects := []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: getNodes},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: getNodes},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: getNodes},
			Subjects: []rbacv1.Subject{{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers:kubeadm:default-node-token",
			}},
		},
		&corev1.ConfigMap{
			ObjectMeta: system("kubeadm-config"),
			Data:       map[string]string{"ClusterConfiguration": strings.TrimSpace(configuration) + "\n"},
		},
		&appsv1.DaemonSet{
			ObjectMeta: system("kube-proxy"),
			Spec:       appsv1.DaemonSetSpec{Template: podTemplate("kube-proxy", image)},
		},
		&corev1.ConfigMap{ObjectMeta: system("coredns"), Data: map[string]string{"Corefile": corefile}},
		&appsv1.Deployment{
			ObjectMeta: system("coredns"),
			Spec:       appsv1.DeploymentSpec{Template: podTemplate("coredns", "registry.k8s.io/coredns/coredns:v1.12.1")},
		},
	}
	for _, name := range []string{
		metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem, corev1.NamespaceNodeLease,
	} {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}
		objects = append(objects, &corev1.Namespace{ObjectMeta: meta})
	}
	for _, object := range objects {
		if err := c.create(ctx, n, object); err != nil {
			return err
		}
	}
	return nil
}

// podTemplate returns a template with one container.
func podTemplate(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}},
	}
}

// createNode makes the Node of m. As with kubeadm, a Node of that name must not be ready.
func (c *Cloud) createNode(ctx context.Context, m *machine, own nodeRegistration) error {
	node := newNode(m, own)
	old := &corev1.Node{}
	switch err := c.store(m.network).Get(ctx, client.ObjectKeyFromObject(node), old); {
	case err == nil && old.Status.NodeInfo.MachineID == m.ID:
		m.Node = node.Name // a step before this one made it
		return nil
	case err == nil && isReady(old):
		return fmt.Errorf("the cluster has a Node %s that is ready", node.Name)
	case err == nil:
		if err := c.store(m.network).Delete(ctx, old); err != nil {
			return err
		}
	case !apierrors.IsNotFound(err):
		return err
	}
	if err := c.create(ctx, m.network, node); err != nil {
		return err
	}
	m.Node = node.Name
	return nil
}

// newNode returns what the kubelet of m registers.
func newNode(m *machine, own nodeRegistration) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: cmp.Or(own.Name, m.Name),
			Labels: map[string]string{
				corev1.LabelHostname: m.Name, corev1.LabelTopologyZone: m.FailureDomain,
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: cmp.Or(own.KubeletExtraArgs["provider-id"], m.ProviderID)},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: m.Version, MachineID: m.ID, SystemUUID: m.ID, OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for label := range strings.SplitSeq(own.KubeletExtraArgs["node-labels"], ",") {
		if name, value, ok := strings.Cut(label, "="); ok {
			node.Labels[name] = value
		}
	}
	for _, address := range m.Addresses {
		node.Status.Addresses = append(node.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeAddressType(address.Type), Address: address.Address})
	}
	if own.Taints != nil {
		node.Spec.Taints = *own.Taints
	}
	if m.ControlPlane {
		node.Labels[controlPlaneRole] = ""
		if own.Taints == nil {
			node.Spec.Taints = []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficient", LastTransitionTime: metav1.Now(),
		})
	}
	setReady(node, corev1.ConditionTrue)
	return node
}

// setReady sets the condition Ready as the kubelet does, or the node controller if the kubelet is silent.
func setReady(node *corev1.Node, status corev1.ConditionStatus) {
	reasons := map[corev1.ConditionStatus]string{
		corev1.ConditionTrue: "KubeletReady", corev1.ConditionFalse: "KubeletNotReady",
		corev1.ConditionUnknown: "NodeStatusUnknown",
	}
	if isReady(node) && status == corev1.ConditionTrue {
		return
	}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady
	})
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reasons[status], LastTransitionTime: metav1.Now(),
	})
}

// isReady reports whether the condition Ready is True.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// changeNode changes the Node of m, if it is still there and its own.
func (c *Cloud) changeNode(ctx context.Context, m *machine, change func(*corev1.Node)) error {
	const attempts = 10 // others write Nodes too
	for range attempts {
		node := &corev1.Node{}
		err := c.store(m.network).Get(ctx, client.ObjectKey{Name: m.Node}, node)
		if apierrors.IsNotFound(err) || err == nil && node.Status.NodeInfo.MachineID != m.ID {
			return nil
		}
		if err != nil {
			return err
		}
		change(node)
		if err := c.store(m.network).Update(ctx, node); !apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.New("change a Node: too many conflicts")
}

// staticPod returns the mirror of a Pod that the kubelet of m runs.
func staticPod(m *machine, component string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: component + "-" + m.Node,
			Labels:      map[string]string{"component": component, "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: m.ID},
		},
		Spec: corev1.PodSpec{
			NodeName: m.Node, HostNetwork: true, Containers: []corev1.Container{{Name: component, Image: component}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// etcdName and serverName are the names of Pods of m.
func etcdName(m *machine) string   { return "etcd-" + m.Node }
func serverName(m *machine) string { return "kube-apiserver-" + m.Node }

// createEtcdPod makes the Pod whose annotations are the member of etcd.
func (c *Cloud) createEtcdPod(ctx context.Context, m *machine) error {
	members, err := c.etcdMembers(ctx, m.network)
	if err != nil {
		return err
	}
	pod := staticPod(m, "etcd")
	number := func() string { return strconv.FormatUint(uint64(rand.Uint32())+1, 10) }
	pod.Annotations[cloudv1.EtcdMemberIDAnnotationName] = number()
	pod.Annotations[cloudv1.EtcdClusterIDAnnotationName] = number()
	if len(members) == 0 {
		pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	} else {
		pod.Annotations[cloudv1.EtcdClusterIDAnnotationName] = members[0].Annotations[cloudv1.EtcdClusterIDAnnotationName]
	}
	return c.create(ctx, m.network, pod)
}

// etcdMembers returns the Pods whose member of etcd has not been removed.
func (c *Cloud) etcdMembers(ctx context.Context, n *network) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := c.store(n).List(ctx, pods, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"component": "etcd", "tier": "control-plane"})
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		_, removed := pod.Annotations[cloudv1.EtcdMemberRemoved]
		return removed
	}), err
}

// keepHouse does what goes on in a cluster by itself: Pods of Nodes that are gone go, and etcd has a leader.
func (c *Cloud) keepHouse(ctx context.Context, n *network) {
	if err := errors.Join(c.collectPods(ctx, n), c.electLeader(ctx, n)); err != nil {
		c.log.Error("keep house", "network", n.id, "error", err)
	}
}

// collectPods deletes the Pods of Nodes that are gone.
func (c *Cloud) collectPods(ctx context.Context, n *network) error {
	pods := &corev1.PodList{}
	if err := c.store(n).List(ctx, pods); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" {
			continue
		}
		err := c.store(n).Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &corev1.Node{})
		if apierrors.IsNotFound(err) {
			err = client.IgnoreNotFound(c.store(n).Delete(ctx, &pod))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// electLeader makes a member of etcd that runs the leader, unless the leader does.
func (c *Cloud) electLeader(ctx context.Context, n *network) error {
	members, err := c.etcdMembers(ctx, n)
	if err != nil {
		return err
	}
	var leader, candidate *corev1.Pod
	var since time.Time
	for i := range members {
		from, err := time.Parse(time.RFC3339, members[i].Annotations[cloudv1.EtcdLeaderFromAnnotationName])
		if err == nil && from.After(since) {
			leader, since = &members[i], from
		}
		if c.mux.HasEtcdMember(n.id, members[i].Name) {
			candidate = &members[i]
		}
	}
	if candidate == nil || leader != nil && c.mux.HasEtcdMember(n.id, leader.Name) {
		return nil
	}
	elected := candidate.DeepCopy()
	elected.Annotations = maps.Clone(candidate.Annotations)
	from := time.Now()
	if !from.Truncate(time.Second).After(since) { // the annotation has seconds, and the latest wins
		from = since.Add(time.Second)
	}
	elected.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = from.Format(time.RFC3339)
	return c.store(n).Update(ctx, elected)
}
