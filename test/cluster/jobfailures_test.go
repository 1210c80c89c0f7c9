// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// TestHookJobFailures runs Jobs that fail in each way that a Pod can: the caller reads what is the matter.
func TestHookJobFailures(t *testing.T) {
	all(t)
	applyFile(t, "failures.yaml")
	t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("failures.yaml")) })
	for job, want := range map[string]string{
		"exits":      "disk full",
		"no-config":  `container "main" cannot start: CreateContainerConfigError`,
		"no-program": `container "main"`, // whose error has the folders of the node in it
		"no-node":    "the Pod has no node: Unschedulable",
		"no-memory":  `container "main" ended: OOMKilled`,
		"too-long":   "active longer than specified deadline",
		"init-fails": "not ready",
	} {
		t.Run(job, func(t *testing.T) {
			answers(t, "BeforeClusterUpgrade", "upgrade.yaml", want, "--handler", "job."+job)
		})
	}
	for job, end := range map[string]func(t *testing.T, namespace, pod string){
		"deleted": func(t *testing.T, namespace, pod string) { kubectl(t, "-n", namespace, "delete", "pod", pod) },
		"evicted": func(t *testing.T, namespace, pod string) {
			eviction := fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pod)
			kubectlWith(t, []byte(eviction), "create", "-f", "-", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod))
		},
	} {
		t.Run(job, func(t *testing.T) {
			answers(t, "BeforeClusterUpgrade", "upgrade.yaml", "runs", "--handler", "job."+job)
			var pod string
			process.EventuallySees(t, process.Patience, "a Pod runs", func() (string, bool) {
				pod = kubectl(t, "get", "pods", "-A", "-l", "hookgate.dev/hook-job="+job, "--field-selector", "status.phase=Running",
					"-o", `jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{end}`)
				return pod, pod != ""
			})
			namespace, name, _ := strings.Cut(pod, " ")
			end(t, namespace, name)
			answers(t, "BeforeClusterUpgrade", "upgrade.yaml", "Job has reached the specified backoff limit: ", "--handler", "job."+job)
		})
	}
}
