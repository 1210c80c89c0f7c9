// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/machines"
	"github.com/hookgate/hookgate/test/process"
)

// operator returns the path of a kubeconfig with which everything is allowed.
func operator(t *testing.T) string {
	t.Helper()
	user, err := sharedServer(t).AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestReleaseCommand runs hookgate machines release as the chart's Job does, while a gateway works: it refuses, then
// scales the gateway down, waits for its Lease to end, and takes the annotations off.
func TestReleaseCommand(t *testing.T) {
	t.Parallel()
	program := process.Program(t, "HOOKGATE_BIN")
	w := newFixture(t)
	kubeconfig := operator(t)
	labels := map[string]string{"app": "hookgate"}
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "example.com/hookgate"}},
		}},
	}}
	d.Name = "hookgate"
	w.create(d)
	m := w.machine("m", "held")
	patch(t, w, m, `{"metadata":{"annotations":{"`+machines.DrainAnnotation+`":"","`+machines.TerminateAnnotation+`":""}}}`)
	now := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("gateway-1"), RenewTime: &now, LeaseDurationSeconds: new(int32(8)),
	}}
	lease.Name = "hookgate-machines"
	w.create(lease)
	release := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"machines", "release", "--kubeconfig", kubeconfig,
			"--gateway-namespace", w.namespace, "-n", w.namespace}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := release(); err == nil || !strings.Contains(out, "gateway-1 is running, and would annotate the Machines again") {
		t.Errorf("while a gateway works: %v, %s", err, out)
	}
	w.has("m", "drain", "terminate")
	out, err := release("--scale-down", "hookgate")
	want := "Deployment " + w.namespace + "/hookgate is scaled to 0.\n1 Machine released.\n"
	if err != nil || out != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
	if took := time.Since(now.Time); took < 8*time.Second {
		t.Errorf("it did not wait for the Lease, but took %s", took)
	}
	w.has("m")
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil || *d.Spec.Replicas != 0 {
		t.Errorf("the Deployment has %d replicas, %v", *d.Spec.Replicas, err)
	}
}
