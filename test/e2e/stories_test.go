// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStories does what docs/stories.md says, with the files as they are. Of two Clusters that are created at the same time,
// one has the quota. It is created, upgraded and deleted, and waits for a Job each time; the test plays the kubelet. Then
// there is quota for the other one. That the scripts of the Jobs do their work is left to test/kubernetes.
func TestStories(t *testing.T) {
	w := begin(t, true)
	w.launch("job-controller", filepath.Join(folder(t, "KUBEBUILDER_ASSETS"), "kube-controller-manager"), "--kubeconfig", w.kubeconfig,
		"--controllers", "job-controller", "--leader-elect=false", "--secure-port=0")
	for _, name := range []string{jobsNamespace, "platform"} {
		w.create(&corev1.Namespace{ObjectMeta: objectMeta("", name)})
	}
	w.create(&corev1.ConfigMap{ObjectMeta: objectMeta("platform", "cluster-quota"), Data: map[string]string{namespace: "1"}})
	w.create(&corev1.ConfigMap{ObjectMeta: objectMeta(jobsNamespace, "cloud-provider")}) // for the kubelet alone
	w.prepareGateway("--hook-jobs-namespace", jobsNamespace)
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	examples := filepath.Join("..", "..", "examples")
	for _, o := range slices.Concat(read(t, "testdata/clusterclass.yaml")[1:], read(t, "testdata/jobs.yaml")[2:],
		read(t, filepath.Join(examples, "rules", "cluster-quota", "rule.yaml")), read(t, filepath.Join(examples, "jobs", "cloud-provider.yaml")),
		read(t, filepath.Join(examples, "jobs", "conformance.yaml")), read(t, filepath.Join(examples, "jobs", "volume-backup.yaml"))) {
		w.create(o)
	}
	w.localsReady("HookRule", []string{"cluster-quota"})
	w.localsReady("HookJob", []string{"cloud-provider", "cloud-provider-upgrade", "conformance", "volume-backup"})
	w.registerGateway(gateway)

	for _, name := range []string{"c", "d"} {
		w.create(w.storyCluster(name))
	}
	first, second := w.oneBegins("c", "d")
	const waits = "the team has 1 machines: this Cluster waits until others are gone"
	w.isHeldBy(second, "BeforeClusterCreate", waits)
	w.logf("of two Clusters, %s begins, and %s waits for the quota", first, second)
	w.succeeds(w.runs("cloud-provider"))
	w.eventuallyWithin(stepPatience, "the Cluster runs", func() (string, bool) { return w.allAt([]string{first}, oldVersion) })

	waitsFor := func(hook, hookJob string) {
		w.t.Helper()
		job := w.runs(hookJob)
		w.isHeldBy(first, hook, "Job "+jobsNamespace+"/"+job.Name+" runs")
		w.logf("%s waits for %s", hook, hookJob)
		w.succeeds(job)
	}
	w.topology(first, func(t *clusterv1.Topology) { t.Version = newVersion })
	waitsFor("BeforeClusterUpgrade", "cloud-provider-upgrade")
	waitsFor("AfterClusterUpgrade", "conformance")
	w.eventuallyWithin(stepPatience, "the Cluster is upgraded", func() (string, bool) { return w.allAt([]string{first}, newVersion) })

	w.isHeldBy(second, "BeforeClusterCreate", waits)
	c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, first)}
	if err := w.Delete(w.ctx, c); err != nil {
		t.Fatal(err)
	}
	waitsFor("BeforeClusterDelete", "volume-backup")
	w.eventuallyWithin(stepPatience, "the Cluster is gone", func() (string, bool) {
		err := w.Get(w.ctx, client.ObjectKeyFromObject(c), c)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	w.eventuallyWithin(stepPatience, "the other Cluster runs", func() (string, bool) { return w.allAt([]string{second}, oldVersion) })
	w.logf("%s is gone, and %s runs", first, second)
	for _, name := range []string{"cloud-provider-upgrade", "conformance", "volume-backup"} {
		w.ranOnce(name)
	}
	if lost := w.failed(); lost != 0 {
		t.Errorf("%d requests of Cluster API failed", lost)
	}
}

// storyCluster returns a Cluster of one machine.
func (w *fixture) storyCluster(name string) *unstructured.Unstructured {
	w.t.Helper()
	c := read(w.t, "testdata/cluster.yaml")[0]
	c.SetName(name)
	c.SetLabels(map[string]string{"backup": "true"})
	set(w.t, c, "plain", "spec", "topology", "classRef", "name")
	set(w.t, c, int64(1), "spec", "topology", "controlPlane", "replicas")
	for _, field := range []string{"workers", "variables"} {
		unstructured.RemoveNestedField(c.Object, "spec", "topology", field)
	}
	return c
}

// oneBegins waits until one of two Clusters is past BeforeClusterCreate, and returns it and the other one.
func (w *fixture) oneBegins(names ...string) (begins, other string) {
	w.t.Helper()
	w.eventually("a Cluster begins", func() (string, bool) {
		for i, name := range names {
			c := &clusterv1.Cluster{}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
				return err.Error(), false
			}
			if c.Spec.ControlPlaneRef.IsDefined() {
				begins, other = name, names[1-i]
			}
		}
		return "none", begins != ""
	})
	return begins, other
}
