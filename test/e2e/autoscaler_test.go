// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// groupSizes are the bounds within which the autoscaler scales.
var groupSizes = map[string]string{
	"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "0",
	"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3",
}

// TestAutoscaler has the real Cluster Autoscaler scale a MachineDeployment of small machines and a pool of large ones
// from zero, one instance of the pool away, and all back to zero. What the machines have, it knows from the provider
// alone, and it has no rights but those that its chart gives it and the ClusterRole of deploy/infrastructure.
//
// The API server of the Clusters in the tests serves no more kinds than Cluster API asks for, and the autoscaler
// needs many. So the cluster that it watches is the management cluster, which gets the Nodes of the other; and the test
// is the scheduler, whose verdict on each Pod is known.
func TestAutoscaler(t *testing.T) {
	program := os.Getenv("HOOKGATE_AUTOSCALER")
	if program == "" {
		t.Skip("HOOKGATE_AUTOSCALER is not set: `make test-autoscaler` builds the Cluster Autoscaler from its repository")
	}
	for _, class := range []string{inPools, inGo} { // a pool that is a group, and one of machines
		t.Run(class, func(t *testing.T) { autoscale(t, program, class) })
	}
}

func autoscale(t *testing.T, program, class string) {
	w := begin(t, false)
	cloud := w.startCloud()
	w.startProvidersOf(cloud, class)
	l := w.newLedger(cloud, "a")
	controlPlane, small, pool := l.watch("a-control-plane-"), l.watch("a-md-0-"), l.watch("a-mp-0-")
	controlPlane.between(0, 1)
	small.between(0, 1)
	pool.between(0, 2)
	s := &scheduler{w: w, l: l, nodes: map[string]*corev1.Node{}, pods: map[string]string{}}
	are := func(inDeployment, madeInDeployment, inPool, madeInPool int) func() (string, bool) {
		return func() (string, bool) {
			sawSmall, ok := l.is(small, inDeployment, madeInDeployment)
			sawPool, also := l.is(pool, inPool, madeInPool)
			pending := s.pending()
			return fmt.Sprintf("%s; %s; pending: %v", sawSmall, sawPool, pending), ok && also && len(pending) == 0
		}
	}
	w.sideBySide(w.logf, func() {
		l.follow()
		s.look()
	}, []step{{
		what: "the control plane runs, and nothing else",
		do: func() {
			for template, parameters := range map[string]string{
				"cluster-template-machinepool.yaml": "size: large", "cluster-template.yaml": "",
			} {
				for _, o := range w.template(template, map[string]string{
					"CLUSTER_NAME": "a", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion, "WORKER_MACHINE_COUNT": "0",
					"HOOKGATE_INFRASTRUCTURE_CLASS": class, "HOOKGATE_WORKER_PARAMETERS": parameters,
				}) {
					if o.GetKind() == "MachinePool" || o.GetKind() == "MachineDeployment" {
						o.SetAnnotations(groupSizes)
					}
					if err := w.Create(w.ctx, o); err != nil && !apierrors.IsAlreadyExists(err) { // both have the Cluster
						t.Fatal(err)
					}
				}
			}
		},
		done: func() (string, bool) {
			saw, ok := l.is(controlPlane, 1, 1)
			return saw, ok && len(s.nodes) == 1
		},
	}, {
		what: "a small Pod has a small machine made",
		do: func() {
			w.startAutoscaler(program)
			s.create("little", "1")
		},
		done: are(1, 1, 0, 0),
	}, {
		what: "a large Pod has a machine of the pool made", do: func() { s.create("large-1", "9") }, done: are(1, 1, 1, 1),
	}, {
		what: "another one has one more made", do: func() { s.create("large-2", "10") }, done: are(1, 1, 2, 2),
	}, {
		what: "of the pool, just the instance goes that has no Pod any more",
		do: func() {
			pool.between(1, 2)
			s.remove("large-1")
		},
		done: func() (string, bool) {
			saw, ok := are(1, 1, 1, 2)()
			if ok && s.nodes[s.pods["large-2"]] == nil {
				t.Errorf("the Node %s of the Pod that runs is gone", s.pods["large-2"])
			}
			return saw, ok
		},
	}, {
		what: "without Pods, all are gone",
		do: func() {
			pool.between(0, 1)
			s.remove("large-2")
			s.remove("little")
		},
		done: are(0, 1, 0, 2),
	}, w.deletion("a", controlPlane, small, pool)})
	w.calm()
	if w.logged("cluster-autoscaler", "is forbidden") {
		t.Error("the autoscaler lacks rights: see its log")
	}
}

// startAutoscaler starts the Cluster Autoscaler, which reads Cluster API's kinds with a service account.
func (w *fixture) startAutoscaler(program string) {
	w.t.Helper()
	const account = "cluster-autoscaler"
	w.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: []rbacv1.PolicyRule{ // its chart's
		{
			APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machinedeployments", "machinepools", "machines", "machinesets"},
			Verbs: []string{"get", "list", "update", "watch"},
		}, {
			APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machinedeployments/scale", "machinepools/scale"},
			Verbs: []string{"get", "patch", "update"},
		},
	}})
	for _, role := range []string{account, "hookgate-infrastructure-autoscaler"} {
		w.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: account}},
		})
	}
	w.launch("cluster-autoscaler", program, "--cloud-provider", "clusterapi", "--kubeconfig", w.kubeconfig,
		"--cloud-config", w.as(metav1.NamespaceSystem, account), "--node-group-auto-discovery", "clusterapi:namespace="+namespace,
		"--expander", "least-waste", "--leader-elect=false", "--address", loopback(freePort(w.t)), "--v", "4",
		"--scan-interval", "2s", "--scale-down-delay-after-add", "5s", "--scale-down-unneeded-time", "5s",
		"--scale-down-delay-after-delete", "2s", "--unremovable-node-recheck-timeout", "5s")
}

// scheduler puts the Pods of the management cluster on the Nodes of a Cluster, which it copies there.
type scheduler struct {
	w     *fixture
	l     *ledger
	nodes map[string]*corev1.Node
	pods  map[string]string // the Node of each, or "" if none has room
}

// look copies Nodes that have become ready, and has those go that are gone; then it looks for Nodes for Pods.
func (s *scheduler) look() {
	s.w.t.Helper()
	cluster := s.l.clusters["a"]
	list := &corev1.NodeList{}
	if cluster == nil || cluster.List(s.w.ctx, list) != nil {
		return // it does not run yet, or any more
	}
	gone := maps.Clone(s.nodes)
	for i := range list.Items {
		delete(gone, list.Items[i].Name)
		if s.nodes[list.Items[i].Name] == nil {
			s.copy(&list.Items[i])
		}
	}
	for name, node := range gone {
		if err := client.IgnoreNotFound(s.w.Delete(s.w.ctx, node)); err != nil {
			s.w.t.Fatal(err)
		}
		delete(s.nodes, name)
	}
	for _, pod := range s.pending() {
		s.bind(pod)
	}
}

// copy makes a Node as its kubelet would, which also knows what the machine has.
func (s *scheduler) copy(from *corev1.Node) {
	s.w.t.Helper()
	has := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110")}
	if strings.HasPrefix(from.Name, "a-mp-0-") {
		has["cpu"], has["memory"] = resource.MustParse("16"), resource.MustParse("64Gi")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: from.Name, Labels: from.Labels}, Spec: from.Spec}
	s.w.create(node)
	base := client.MergeFrom(node.DeepCopy())
	node.Spec.Taints = from.Spec.Taints // without those that admission adds until a controller sees that it is ready
	if err := s.w.Patch(s.w.ctx, node, base); err != nil {
		s.w.t.Fatal(err)
	}
	base = client.MergeFrom(node.DeepCopy())
	node.Status = from.Status
	node.Status.Capacity, node.Status.Allocatable = has, has
	if err := s.w.Status().Patch(s.w.ctx, node, base); err != nil {
		s.w.t.Fatal(err)
	}
	s.nodes[node.Name] = node
}

// create makes a Pod that wants so much CPU, and says that no Node has it.
func (s *scheduler) create(name, cpu string) {
	s.w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: objectMeta(namespace, name)}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
	}}}
	s.w.create(pod)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	if err := s.w.Status().Update(s.w.ctx, pod); err != nil {
		s.w.t.Fatal(err)
	}
	s.pods[name] = ""
}

// remove deletes a Pod at once.
func (s *scheduler) remove(name string) {
	s.w.t.Helper()
	if err := s.w.Delete(s.w.ctx, &corev1.Pod{ObjectMeta: objectMeta(namespace, name)}, client.GracePeriodSeconds(0)); err != nil {
		s.w.t.Fatal(err)
	}
	delete(s.pods, name)
}

// pending returns the names of the Pods that have no Node, in order.
func (s *scheduler) pending() []string {
	var names []string
	for name, node := range s.pods {
		if node == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// bind puts a Pod on a Node that has no other one: a large Pod on a machine of the pool, a little one on a small machine.
func (s *scheduler) bind(name string) {
	s.w.t.Helper()
	kind, taken := "a-md-0-", slices.Collect(maps.Values(s.pods))
	if strings.HasPrefix(name, "large") {
		kind = "a-mp-0-"
	}
	for node := range s.nodes {
		if !strings.HasPrefix(node, kind) || slices.Contains(taken, node) {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: objectMeta(namespace, name)}
		binding := &corev1.Binding{ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		if err := s.w.SubResource("binding").Create(s.w.ctx, pod, binding); err != nil {
			s.w.t.Fatal(err)
		}
		base := client.MergeFrom(pod.DeepCopy())
		pod.Status.Phase = corev1.PodRunning
		if err := s.w.Status().Patch(s.w.ctx, pod, base); err != nil {
			s.w.t.Fatal(err)
		}
		s.pods[name] = node
		return
	}
}
