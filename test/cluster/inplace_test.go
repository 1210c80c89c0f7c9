// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// TestUpdateMachineByJob updates a Machine in place by a Job, whose container reads what the Machine is to become and the
// name of its Node. The same update runs once, and the Job goes when Cluster API has ended the update.
func TestUpdateMachineByJob(t *testing.T) {
	all(t)
	applyFile(t, "inplace.yaml")
	t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("inplace.yaml")) })
	kubectl(t, "patch", "machine/m", "--subresource=status", "--type=merge", "-p", `{"status": {"nodeRef": {"name": "node-of-m"}}}`)
	update := []string{"--handler", "job.in-place"}
	answers(t, "UpdateMachine", "update.yaml", "node-of-m", update...)
	const of = "hookgate.dev/hook-job=in-place"
	first := kubectl(t, "-n", "hookgate-jobs", "get", "jobs", "-l", of, "-o", "jsonpath={.items[*].metadata.uid}")
	answers(t, "UpdateMachine", "update.yaml", `"version":"v1.37.0"`, update...)
	if again := kubectl(t, "-n", "hookgate-jobs", "get", "jobs", "-l", of, "-o", "jsonpath={.items[*].metadata.uid}"); again != first ||
		len(strings.Fields(first)) != 1 {
		t.Errorf("the Jobs were %q, and are %q", first, again)
	}
	kubectl(t, "annotate", "machine/m", "in-place-updates.internal.cluster.x-k8s.io/update-in-progress-")
	process.EventuallySees(t, 3*process.Patience, "the Job is gone when the update is over", func() (string, bool) {
		left := kubectl(t, "-n", "hookgate-jobs", "get", "jobs", "-l", of, "-o", "name")
		return left, left == ""
	})
}
