// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// keptAnnotation is for how many seconds a Job is kept once its success is recorded.
const keptAnnotation = ownPrefix + "kept-seconds"

// settle notes what became of a Job that has ended: it records a success, and writes the message of its container to
// the Job, which Kubernetes may remove from then on. It may be called again at any point.
func (c *Cluster) settle(ctx context.Context, job *batchv1.Job) (message string, err error) {
	_, succeeded := hasEnded(job)
	if message, err = c.message(ctx, job, succeeded); err != nil {
		return "", err
	}
	change := map[string]any{"metadata": map[string]any{
		"uid": job.UID, "annotations": map[string]any{messageAnnotation: message},
	}}
	if succeeded {
		if err := c.record(ctx, job); err != nil {
			return "", err
		}
		if err := c.keepForMove(ctx, job); err != nil {
			return "", err
		}
		kept, err := strconv.ParseInt(job.Annotations[keptAnnotation], 10, 32)
		if err != nil {
			kept = int64(limits.DefaultJobKept.Seconds())
		}
		if job.Labels[machineLabel] == "" || untilGone(job) { // the others are deleted when the update has ended
			change["spec"] = map[string]any{"ttlSecondsAfterFinished": kept}
		}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return "", err
	}
	err = c.API.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if err == nil && !succeeded {
		c.event(job, failedReason, message)
	}
	return message, client.IgnoreNotFound(err)
}

// message returns the termination message of a Job that has ended: that of the container of its last Pod, or if there
// is none and it has failed, what Kubernetes says of the Job and of its last Pod.
func (c *Cluster) message(ctx context.Context, job *batchv1.Job, succeeded bool) (string, error) {
	var pods corev1.PodList
	err := c.API.List(ctx, &pods, client.InNamespace(job.Namespace), client.Limit(limits.JobPods),
		client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)})
	if err != nil {
		return "", err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return newest(&a, &b) })
	for i := range pods.Items {
		if m := terminated(&pods.Items[i], succeeded); m != "" {
			return bounded(m), nil
		}
	}
	if succeeded {
		return "", nil
	}
	why := job.Annotations[problemAnnotation] // a Pod is gone once its Job has reached its deadline
	if len(pods.Items) > 0 {
		why = cmp.Or(problem(&pods.Items[0], time.Now()), why)
	}
	for i := range job.Status.Conditions {
		if f := &job.Status.Conditions[i]; f.Type == batchv1.JobFailed {
			if why == "" && len(pods.Items) == 0 && f.Reason == batchv1.JobReasonBackoffLimitExceeded {
				why = "its Pod is gone: it was deleted or evicted" // a Pod that failed by itself stays with its Job
			}
			said := strings.TrimSuffix(cmp.Or(f.Message, f.Reason), ".")
			return bounded(strings.Trim(said+": "+why, ": ")), nil
		}
	}
	return bounded(why), nil
}

// terminated returns the message of the first container of a Pod that has ended as its Job has, with the reason if that
// is more than its exit code.
func terminated(pod *corev1.Pod, succeeded bool) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			for _, in := range []corev1.ContainerState{list[i].State, list[i].LastTerminationState} {
				t := in.Terminated
				switch {
				case t == nil || (t.ExitCode == 0) != succeeded || strings.TrimSpace(t.Message) == "" || ofRuntime(t):
				case succeeded || t.Reason == "" || t.Reason == "Error":
					return t.Message
				default:
					return howEnded(list[i].Name, t) + ": " + t.Message
				}
			}
		}
	}
	return ""
}

func bounded(message string) string {
	return text.Cut(strings.TrimSpace(strings.ToValidUTF8(message, "�")), limits.JobMessageBytes)
}
