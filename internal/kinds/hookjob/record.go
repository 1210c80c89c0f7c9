// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// success is a Job that has succeeded, in the record of its HookJob: a ConfigMap that has one by the key of each run.
// The HookJob owns it.
type success struct {
	Cluster string `json:"cluster"`           // namespace/name
	Machine string `json:"machine,omitempty"` // namespace/name of the Machine, for hooks about one
	UID     string `json:"uid,omitempty"`     // of the Machine, or else of the Cluster
	Time    int64  `json:"time"`              // seconds since 1970
	// UntilGone means that the record stays as long as the Machine exists, not only while it is updated in place.
	UntilGone bool `json:"untilGone,omitempty"`
	// AfterDelete means that the hook is called once the Cluster is gone, so that the record has to outlive it.
	AfterDelete bool `json:"afterDelete,omitempty"`
}

// isKept reports whether the record of a Cluster that is gone is still needed: the hook is called until its success has
// been answered.
func (s *success) isKept() bool {
	return s.AfterDelete && time.Since(time.Unix(s.Time, 0)) < limits.ClusterEndUnmatched
}

// isAfterDelete reports whether a Job is for AfterClusterDelete.
func isAfterDelete(job *batchv1.Job) bool { return job.Labels[hookLabel] == afterClusterDelete }

const afterClusterDelete = "AfterClusterDelete"

// untilGone reports whether a Job is for a hook that accompanies a Machine, and not for an update in place.
func untilGone(job *batchv1.Job) bool {
	return job.Labels[machineLabel] != "" && job.Labels[hookLabel] != updateMachine
}

const updateMachine = "UpdateMachine"

// keyOf returns the key of the run that a Job is for.
func keyOf(job *batchv1.Job) string { return job.Name[max(len(job.Name)-2*keyBytes, 0):] }

func (c *Cluster) recordKey(hookJob string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: "hookgate-job-" + hookJob}
}

// recorded reports whether the success of a run is recorded.
func (c *Cluster) recorded(ctx context.Context, r *run) (bool, error) {
	record := &corev1.ConfigMap{}
	err := c.API.Get(ctx, c.recordKey(r.hookJob), record)
	_, found := record.Data[r.key]
	found = found && !isOfEarlier(record, r.hookJobUID)
	if err = client.IgnoreNotFound(err); err == nil && !found {
		found, err = c.movedHere(ctx, r)
	}
	return found, c.explain(fmt.Sprintf("read the record of HookJob %q", r.hookJob), err)
}

// record records the success of a Job.
func (c *Cluster) record(ctx context.Context, job *batchv1.Job) error {
	key := keyOf(job)
	now := &success{
		Cluster: job.Annotations[clusterAnnotation], UID: job.Annotations[clusterUIDAnnotation], Time: time.Now().Unix(),
		AfterDelete: isAfterDelete(job),
	}
	if uid := job.Labels[machineLabel]; uid != "" {
		now.UID, now.Machine, now.UntilGone = uid, job.Annotations[machineAnnotation], untilGone(job)
	}
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return fmt.Errorf("job %s/%s: the HookJob does not own the Job", job.Namespace, job.Name)
	}
	return c.change(ctx, job.Labels[HookJobLabel], owner, func(all map[string]*success) (bool, error) {
		if all[key] != nil {
			return false, nil
		}
		dropOldest(all, now)
		if len(all) >= limits.JobRecords {
			return false, failuref("the record of HookJob %q is full: see hookgate job forget --help", job.Labels[HookJobLabel])
		}
		all[key] = now
		return true, nil
	})
}

// dropOldest makes room for another success of a Cluster or Machine that has as many as it may.
func dropOldest(all map[string]*success, now *success) {
	var same []string
	for key, s := range all {
		if s.Cluster == now.Cluster && s.UID == now.UID {
			same = append(same, key)
		}
	}
	slices.SortFunc(same, func(a, b string) int { return int(all[a].Time - all[b].Time) })
	for _, key := range same[:max(len(same)-limits.JobRecordsOfCluster+1, 0)] {
		delete(all, key)
	}
}

// forget removes successes of a HookJob from its record.
func (c *Cluster) forget(ctx context.Context, hookJob string, which func(key string, s *success) bool) error {
	return c.change(ctx, hookJob, nil, func(all map[string]*success) (changed bool, err error) {
		for key, s := range all {
			if which(key, s) {
				delete(all, key)
				changed = true
			}
		}
		return changed, nil
	})
}

// change changes the record of a HookJob, which is made if there is none and owner is not nil.
func (c *Cluster) change(
	ctx context.Context, hookJob string, owner *metav1.OwnerReference, change func(map[string]*success) (bool, error),
) error {
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, again, func() error {
		record := &corev1.ConfigMap{}
		key := c.recordKey(hookJob)
		err := c.API.Get(ctx, key, record)
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent || absent && owner == nil {
			return client.IgnoreNotFound(err)
		}
		if owner != nil && isOfEarlier(record, owner.UID) {
			return hook.Errorf(hook.Unreachable, "the record of HookJob %q belongs to another HookJob with the same name, "+
				"and one of the two HookJobs is being deleted: try again", hookJob)
		}
		all := map[string]*success{}
		for key, text := range record.Data {
			s := &success{}
			if err := json.Unmarshal([]byte(text), s); err != nil {
				return failuref("ConfigMap %s/%s: the record of HookJob %q has the entry %s, which cannot be read",
					record.Namespace, record.Name, hookJob, key)
			}
			all[key] = s
		}
		changed, err := change(all)
		if err != nil || !changed {
			return err
		}
		record.Data = make(map[string]string, len(all))
		for key, s := range all {
			text, _ := json.Marshal(s) // of texts and a number
			record.Data[key] = string(text)
		}
		if !absent {
			return c.API.Update(ctx, record)
		}
		record.Namespace, record.Name = key.Namespace, key.Name
		record.Labels = map[string]string{HookJobLabel: hookJob}
		record.OwnerReferences = []metav1.OwnerReference{*owner}
		return c.API.Create(ctx, record)
	})
}

// isOfEarlier reports whether an object that a HookJob owns is of another one than that with a UID: of one that was
// deleted, whose name the other one has now.
func isOfEarlier(o metav1.Object, uid types.UID) bool {
	of := metav1.GetControllerOf(o)
	return of != nil && of.UID != uid
}

// owner returns a reference to a HookJob, which owns its Jobs and its record.
func (j *Job) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Name: j.name, UID: j.uid, Controller: new(true),
	}
}
