// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waitsFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminatedBy(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

// TestProblem checks that what a kubelet writes, with its ids, addresses and times, makes texts that stay the same.
func TestProblem(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	const notFound = `container "main" cannot start: ImagePullBackOff of image "r.example/i:v1": not found`
	for name, tt := range map[string]struct {
		init, main, last corev1.ContainerState
		pod              corev1.PodStatus
		old              bool
		want             string
	}{
		"runs":              {main: running},
		"pull":              {main: waitsFor("ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "r.example/i:v1": failed to resolve reference "r.example/i:v1": r.example/i:v1: not found`), want: notFound},
		"pull again":        {main: waitsFor("ImagePullBackOff", `Back-off pulling image "r.example/i:v1": ErrImagePull: rpc error: code = NotFound desc = failed to resolve reference: r.example/i:v1: not found`), want: notFound},
		"pull, old kubelet": {main: waitsFor("ImagePullBackOff", `Back-off pulling image "r.example/i:v1"`), want: `container "main" cannot start: ImagePullBackOff of image "r.example/i:v1"`},
		"no registry": {main: waitsFor("ErrImagePull", `failed to do request: Head "https://r.example/v2/i/manifests/v1": dial tcp: lookup r.example on 10.96.0.10:53: no such host`),
			want: `container "main" cannot start: ImagePullBackOff of image "r.example/i:v1": no such host`},
		"name": {main: waitsFor("InvalidImageName", `Failed to apply default image tag "A": couldn't parse image name "A": invalid reference format`),
			want: `container "main" cannot start: InvalidImageName of image "r.example/i:v1"`},
		"config": {main: waitsFor("CreateContainerConfigError", `secret "key" not found`), want: `container "main" cannot start: CreateContainerConfigError: secret "key" not found`},
		"config of an API server": {main: waitsFor("CreateContainerConfigError", `Get "https://10.0.0.1:6443/api/v1/x": dial tcp 10.0.0.1:6443: connect: connection refused`),
			want: `container "main" cannot start: CreateContainerConfigError: connection refused`},
		"root": {main: waitsFor("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "a-x1_jobs(2f0c)", container: main)`),
			want: `container "main" cannot start: CreateContainerConfigError: container has runAsNonRoot and image will run as root`},
		"create":             {main: waitsFor("CreateContainerError", `failed to reserve container name "main_a-x1_jobs_2f0c_0": name is reserved for "9e1f"`), want: `container "main" cannot start: CreateContainerError`},
		"init":               {init: waitsFor("ErrImagePull", "429 Too Many Requests"), main: waitsFor("PodInitializing", ""), want: `container "first" cannot start: ImagePullBackOff of image "r.example/first": Too Many Requests`},
		"init runs for long": {init: running, main: waitsFor("PodInitializing", ""), old: true},
		"init failed":        {init: terminatedBy(2, "Error", ""), main: waitsFor("PodInitializing", ""), want: `container "first" ended with exit code 2`},
		"memory":             {main: terminatedBy(137, "OOMKilled", ""), want: `container "main" ended: OOMKilled`},
		"memory, back-off":   {main: waitsFor("CrashLoopBackOff", "back-off 1m20s restarting failed container=main pod=a-x1_jobs(2f0c)"), last: terminatedBy(137, "OOMKilled", ""), want: `container "main" ended: OOMKilled`},
		"memory, runs again": {main: running, last: terminatedBy(137, "OOMKilled", ""), want: `container "main" ended: OOMKilled`},
		"no program": {main: terminatedBy(128, "StartError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: exec: "nope": executable file not found in $PATH: unknown`),
			want: `container "main" ended: StartError: exec: "nope": executable file not found in $PATH`},
		"creating":          {main: waitsFor("ContainerCreating", "")},
		"creating for long": {main: waitsFor("ContainerCreating", ""), old: true, want: `container "main" has not started: ContainerCreating`},
		"evicted":           {main: terminatedBy(137, "Error", ""), pod: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 7Mi."}, want: "the Pod failed: Evicted"},
		"evicted by the API": {main: running, pod: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		}}}, want: "the Pod was disrupted: EvictionByEvictionAPI"},
		"no node": {pod: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/5 nodes are available: 2 Insufficient memory, 3 Insufficient cpu. preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.",
		}}}, want: "the Pod has no node: Unschedulable: Insufficient cpu, Insufficient memory"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tt.pod, Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "first", Image: "r.example/first"}}, Containers: []corev1.Container{{Name: "main", Image: "r.example/i:v1"}},
			}}
			now := time.Now()
			pod.CreationTimestamp = metav1.NewTime(now)
			if tt.old {
				pod.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
			}
			if tt.init != (corev1.ContainerState{}) {
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first", State: tt.init}}
			}
			if tt.main != (corev1.ContainerState{}) {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: tt.main, LastTerminationState: tt.last}}
			}
			if got := problem(pod, now); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
