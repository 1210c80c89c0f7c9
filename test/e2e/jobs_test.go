// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// jobsNamespace is where the Jobs of TestJobs run.
const jobsNamespace = "hookgate-jobs"

// TestJobs upgrades a Cluster that waits for a backup, and, when all its Machines are upgraded, for a conformance run.
// Both are Jobs of the real controller, and there is no extension; the test plays the kubelet. The gateway is killed while
// either Job runs: each runs exactly once.
func TestJobs(t *testing.T) {
	w := begin(t, true)
	w.launch("job-controller", filepath.Join(folder(t, "KUBEBUILDER_ASSETS"), "kube-controller-manager"), "--kubeconfig", w.kubeconfig,
		"--controllers", "job-controller", "--leader-elect=false", "--secure-port=0")
	h := w.watchUpgrades()
	w.create(&corev1.Namespace{ObjectMeta: objectMeta("", jobsNamespace)})
	w.prepareGateway("--hook-jobs-namespace", jobsNamespace)
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	for _, o := range append(read(t, "testdata/clusterclass.yaml")[1:], read(t, "testdata/jobs.yaml")...) {
		w.create(o)
	}
	w.localsReady("HookJob", []string{"backup", "conformance"})
	w.registerGateway(gateway)
	c := read(t, "testdata/cluster.yaml")[0]
	set(t, c, "plain", "spec", "topology", "classRef", "name")
	set(t, c, int64(1), "spec", "topology", "controlPlane", "replicas")
	for _, field := range []string{"workers", "variables"} {
		unstructured.RemoveNestedField(c.Object, "spec", "topology", field)
	}
	w.create(c)
	w.eventuallyWithin(stepPatience, "the Cluster runs", func() (string, bool) { return w.allAt([]string{"c"}, oldVersion) })
	w.logf("the Cluster runs %s", oldVersion)

	w.topology("c", func(t *clusterv1.Topology) { t.Version = newVersion })
	backup := w.runs("backup")
	want := "Job " + jobsNamespace + "/" + backup.Name + " runs"
	w.heldBy("BeforeClusterUpgrade", want)
	w.logf("the upgrade waits: %s", want)
	w.hasKubeconfig(backup)
	w.replaceGateway(func() { w.end(w.gateway) })
	w.eventually("Cluster API has asked again", func() (string, bool) {
		n := total(w.gateway.scrape(t, "hookgate_handler_calls_total"), "handler", "job.backup", "outcome", "success")
		return fmt.Sprintf("%d calls", n), n > 0
	})
	w.heldBy("BeforeClusterUpgrade", want)
	if again := w.runs("backup"); again.UID != backup.UID {
		t.Errorf("when the gateway was killed, Job %s was made again", backup.Name)
	}
	if got := h.versions(); !slices.Equal(got, []string{oldVersion}) {
		t.Errorf("the backup runs, and Machines have the versions %v", got)
	}
	w.logf("the gateway was killed, and it still waits")

	w.succeeds(backup)
	w.eventually("the control plane is upgraded", func() (string, bool) {
		got := h.versions()
		return fmt.Sprint(got), slices.Contains(got, newVersion)
	})
	conformance := w.runs("conformance")
	w.heldBy("AfterClusterUpgrade", "Job "+jobsNamespace+"/"+conformance.Name+" runs")
	w.replaceGateway(func() { w.end(w.gateway) })
	w.succeeds(conformance)
	w.eventuallyWithin(stepPatience, "the Cluster is upgraded", func() (string, bool) { return w.allAt([]string{"c"}, newVersion) })
	w.logf("the gateway was killed again, the conformance run is done, and the Cluster runs %s", newVersion)
	for _, name := range []string{"backup", "conformance"} {
		w.ranOnce(name)
	}
	if lost := w.failed(); lost != w.lost {
		t.Errorf("%d requests of Cluster API failed, and %d of them while the gateway was away", lost, w.lost)
	}
}

// runs returns the one Job of a HookJob, when it runs.
func (w *fixture) runs(hookJob string) *batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	w.eventuallyWithin(stepPatience, "the Job of "+hookJob+" runs", func() (string, bool) {
		err := w.List(w.ctx, list, client.InNamespace(jobsNamespace), client.MatchingLabels{"hookgate.dev/hook-job": hookJob})
		return fmt.Sprint(len(list.Items), " Jobs, ", err), err == nil && len(list.Items) == 1 && list.Items[0].Status.Active == 1
	})
	return &list.Items[0]
}

// heldBy waits until the Cluster says which hook holds it, and why.
func (w *fixture) heldBy(hook, want string) {
	w.t.Helper()
	w.isHeldBy("c", hook, want)
}

func (w *fixture) isHeldBy(cluster, hook, want string) {
	w.t.Helper()
	w.eventually("Cluster "+cluster+" says that "+want, func() (string, bool) {
		c := &clusterv1.Cluster{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, c); err != nil {
			return err.Error(), false
		}
		of := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
		return fmt.Sprint(of), of != nil && blocks(of.Message, hook) && strings.Contains(of.Message, want)
	})
}

// hasKubeconfig checks that a Job has the kubeconfig that Cluster API has made.
func (w *fixture) hasKubeconfig(job *batchv1.Job) {
	w.t.Helper()
	files, made := &corev1.Secret{}, &corev1.Secret{}
	for key, secret := range map[client.ObjectKey]*corev1.Secret{
		client.ObjectKeyFromObject(job): files, {Namespace: namespace, Name: "c-kubeconfig"}: made,
	} {
		if err := w.Get(w.ctx, key, secret); err != nil {
			w.t.Fatal(err)
		}
	}
	if got := files.Data["kubeconfig"]; len(got) == 0 || !bytes.Equal(got, made.Data["value"]) {
		w.t.Error("the kubeconfig of the Job is not that of the Cluster")
	}
	if !bytes.Contains(files.Data["request.json"], []byte(newVersion)) {
		w.t.Errorf("the request of the Job is %s", files.Data["request.json"])
	}
}

// pods returns the Pods of a Job.
func (w *fixture) pods(job *batchv1.Job) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.List(w.ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// succeeds ends the Pod of a Job, as the kubelet would.
func (w *fixture) succeeds(job *batchv1.Job) {
	w.t.Helper()
	pods := w.pods(job)
	if len(pods) != 1 {
		w.t.Fatalf("Job %s has %d Pods", job.Name, len(pods))
	}
	pods[0].Status.Phase = corev1.PodSucceeded
	pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "done"}}}}
	if err := w.Status().Update(w.ctx, &pods[0]); err != nil {
		w.t.Fatal(err)
	}
}

// ranOnce checks that a HookJob had one Job with one Pod, and that its success is recorded.
func (w *fixture) ranOnce(hookJob string) {
	w.t.Helper()
	record := &corev1.ConfigMap{}
	w.eventually("the success of "+hookJob+" is recorded", func() (string, bool) {
		err := w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "hookgate-job-" + hookJob}, record)
		return fmt.Sprint(record.Data, err), len(record.Data) == 1
	})
	list := &batchv1.JobList{}
	if err := w.List(w.ctx, list, client.InNamespace(jobsNamespace), client.MatchingLabels{"hookgate.dev/hook-job": hookJob}); err != nil {
		w.t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Status.Succeeded != 1 || len(w.pods(&list.Items[0])) != 1 {
		w.t.Errorf("HookJob %s has the Jobs %+v", hookJob, list.Items)
	}
}
