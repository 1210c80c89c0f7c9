// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
)

const hookJobs = "/apis/hookgate.dev/v1alpha1/hookjobs/"

// A gateway that may run no Jobs does not answer without a HookJob that is there, from the start.
func TestJobsWithoutNamespaces(t *testing.T) {
	api := newAPIServer(t)
	job := &v1alpha1.HookJob{TypeMeta: metav1.TypeMeta{APIVersion: "hookgate.dev/v1alpha1", Kind: "HookJob"}}
	job.Name, job.UID = "backup", "1"
	job.Spec.Hook = "BeforeClusterUpgrade"
	job.Spec.JobTemplate.Raw = []byte(
		`{"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:v1"}]}}}}`)
	api.put(hookJobs+"backup", job)
	for _, readOnly := range []bool{true, false} {
		r := start(t, api, func(c *controllers.Config) { c.ReadOnly = readOnly })
		closures := r.registry.Snapshot().Closures()
		if len(closures) != 1 || closures[0].Hooks[0].Hook != "BeforeClusterUpgrade" {
			t.Errorf("read-only %t: calls fail because of %+v", readOnly, closures)
		}
		if !readOnly {
			const refused = "spec: Forbidden: this gateway runs no Jobs"
			api.awaitReadyAt(t, hookJobs+"backup", v1alpha1.InvalidReason, refused)
			// Another gateway may run it: its verdict stays.
			job.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReadyReason, ObservedGeneration: 1,
			}}
			api.put(hookJobs+"backup", job)
			other := job.DeepCopy()
			other.Name, other.UID, other.Status.Conditions = "other", "2", nil
			api.put(hookJobs+"other", other)
			api.awaitReadyAt(t, hookJobs+"other", v1alpha1.InvalidReason, refused)
			api.awaitReadyAt(t, hookJobs+"backup", v1alpha1.ReadyReason, "")
		}
		r.stop()
	}
}
