// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMove moves a live Cluster to another management cluster with clusterctl: three machines of the control plane, a pool
// of two, and the credentials that it names. The controllers of both management clusters run meanwhile. No machine is
// made or deleted by it, and the Cluster goes on living there.
func TestMove(t *testing.T) {
	from := begin(t, false)
	to := from.beside()
	cloud := from.startCloud()
	from.startProviders(cloud)
	to.startProviders(cloud)
	from.logf("two management clusters have the same classes")

	from.create(&corev1.Secret{
		ObjectMeta: objectMeta(namespace, "creds"), Data: map[string][]byte{"user": []byte("somebody")},
	})
	for _, o := range from.template("cluster-template-machinepool.yaml", map[string]string{
		"CLUSTER_NAME": "m", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion, "CONTROL_PLANE_MACHINE_COUNT": "3",
		"WORKER_MACHINE_COUNT": "2", "HOOKGATE_INFRASTRUCTURE_CLASS": inPython,
	}) {
		if o.GetKind() == "HookgateCluster" {
			set(t, o, "creds", "spec", "credentialsRef", "name")
		}
		from.create(o)
	}
	l := from.newLedger(cloud, "m")
	controlPlane, pool := l.watch("m-control-plane-"), l.watch("m-mp-0-")
	controlPlane.between(0, 3)
	pool.between(0, 2)
	runs := func(w *fixture, what string, workers, made int) {
		t.Helper()
		l.w = w
		w.eventuallyWithin(stepPatience, what, func() (string, bool) {
			l.follow()
			if saw, ok := w.fleetRuns(l, controlPlane, client.MatchingLabels{
				clusterv1.ClusterNameLabel: "m", clusterv1.MachineControlPlaneLabel: "",
			}, oldVersion, 3, 3); !ok {
				return saw, false
			}
			return w.fleetRuns(l, pool, client.MatchingLabels{clusterv1.MachinePoolNameLabel: "m-mp-0"}, oldVersion, workers, made)
		})
		w.logf("%s", what)
	}
	runs(from, "three machines of the control plane and a pool of two run", 2, 2)
	before := l.counts()
	controlPlane.between(3, 3)
	pool.between(2, 2)

	move := exec.CommandContext(from.ctx, folder(t, "HOOKGATE_CLUSTERCTL"), "move", "--namespace", namespace,
		"--kubeconfig", from.kubeconfig, "--to-kubeconfig", to.kubeconfig)
	home := t.TempDir()
	move.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	if output, err := move.CombinedOutput(); err != nil {
		t.Fatalf("clusterctl move: %v\n%s", err, output)
	}
	runs(to, "all of them run in the other management cluster", 2, 2)
	for kind, name := range map[string]string{"HookgateCluster": "m", "HookgateMachinePool": "m-mp-0"} {
		to.eventually("the extension is called about "+name+" there", func() (string, bool) {
			saw, ok := to.conditionOf(kind, namespace, name, "Synced")
			if !ok {
				return saw, false
			}
			return to.conditionOf(kind, namespace, name, "Ready")
		})
	}
	if saw, ok := to.conditionOf("HookgateCluster", namespace, "m", "CredentialsMovable"); !ok {
		t.Errorf("the credentials cannot be moved again: %s", saw)
	}
	from.left(t)
	if after := l.counts(); after.Machines != before.Machines || after.Networks != before.Networks || len(after.Repeated) > 0 {
		t.Errorf("the cloud had counted %+v before the move, and %+v after it", before, after)
	}

	pool.between(2, 3)
	to.patch("MachinePool", "m-mp-0", int64(3), "spec", "replicas")
	runs(to, "the pool was scaled there", 3, 3)
	last := to.deletion("m", controlPlane, pool)
	last.do()
	to.eventuallyWithin(stepPatience, last.what, func() (string, bool) {
		l.follow()
		return last.done()
	})
	if got, want := l.counts().Machines, (tally{Created: 6, Deleted: 6}); got != want {
		t.Errorf("the cloud has counted the machines %+v, want %+v", got, want)
	}
	from.calm()
	to.calm()
}

// left checks that nothing of the Cluster is left in the management cluster that it was moved from.
func (w *fixture) left(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"HookgateCluster", "HookgateMachine", "HookgateMachinePool", "HookgateMachineTemplate"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("infrastructure.hookgate.dev/v1alpha1")
		list.SetKind(kind + "List")
		if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) > 0 {
			t.Errorf("%d objects of kind %s are left, %v", len(list.Items), kind, err)
		}
	}
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "creds"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the credentials are left: %v", err)
	}
}
