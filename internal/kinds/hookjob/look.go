// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Look writes to each Job that goes on what keeps its last Pod from succeeding. All replicas answer with that from
// their caches, and it is there when the Pod is gone.
func (c *Cluster) Look(ctx context.Context) error {
	var list batchv1.JobList
	if err := c.Jobs.List(ctx, &list, client.HasLabels{HookJobLabel}); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	unready := map[string][]*batchv1.Job{} // by namespace
	for i := range list.Items {
		if job := &list.Items[i]; mayFail(job) {
			unready[job.Namespace] = append(unready[job.Namespace], job)
		}
	}
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(unready)) {
		last, err := c.lastPods(ctx, namespace)
		if err != nil {
			errs = append(errs, fmt.Errorf("list Pods of namespace %s: %w", namespace, err))
			continue
		}
		for _, job := range unready[namespace] {
			if err := c.note(ctx, job, last[job.UID]); client.IgnoreNotFound(err) != nil {
				errs = append(errs, fmt.Errorf("job %s/%s: %w", job.Namespace, job.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// mayFail reports whether a Job has started and goes on, but not all of its Pods are ready, or were not.
func mayFail(job *batchv1.Job) bool {
	ended, _ := hasEnded(job)
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	if ended || suspended || job.DeletionTimestamp != nil || job.Annotations[startedAnnotation] == "" {
		return false
	}
	ready := job.Status.Ready != nil && job.Status.Active > 0 && *job.Status.Ready >= job.Status.Active
	return !ready || job.Annotations[problemAnnotation] != ""
}

// lastPods returns the last Pod of each Job of a namespace, by the UID of the Job, but for those that have succeeded.
func (c *Cluster) lastPods(ctx context.Context, namespace string) (map[types.UID]*corev1.Pod, error) {
	last, list := map[types.UID]*corev1.Pod{}, &corev1.PodList{}
	unsuccessful := fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded))
	for {
		err := c.API.List(ctx, list, client.InNamespace(namespace), client.HasLabels{HookJobLabel},
			client.MatchingFieldsSelector{Selector: unsuccessful}, client.Limit(100), client.Continue(list.Continue))
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			uid := types.UID(pod.Labels[batchv1.ControllerUidLabel])
			if last[uid] == nil || newest(pod, last[uid]) < 0 {
				last[uid] = pod.DeepCopy() // the list is read again
			}
		}
		if list.Continue == "" {
			return last, nil
		}
	}
}

// newest compares Pods, of which the last one comes first.
func newest(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// note writes to a Job what keeps its last Pod from succeeding, if that has changed. It stays until a Pod runs.
func (c *Cluster) note(ctx context.Context, job *batchv1.Job, last *corev1.Pod) error {
	var found string
	before := job.Annotations[problemAnnotation]
	switch {
	case last != nil:
		if found = problem(last, time.Now()); found == "" && last.Status.Phase != corev1.PodRunning {
			return nil
		}
	case before != "" || job.Status.StartTime == nil || time.Since(job.Status.StartTime.Time) < slowStart:
		return nil
	default:
		found = "it has no Pod: the events of the Job say why"
	}
	found = redact.Bounded(found, limits.JobProblemBytes)
	if found == before || found != "" && strings.HasPrefix(before, found+":") { // without a cause that was known
		return nil
	}
	var value any // null removes it
	if found != "" {
		value = found
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": job.UID, "annotations": map[string]any{problemAnnotation: value},
	}})
	if err != nil {
		return err
	}
	err = c.API.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if err == nil && found != "" {
		c.event(job, failingReason, found)
	}
	return err
}
