// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

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
}
