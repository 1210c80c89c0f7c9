// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// A ClusterRecord for each HookJob and Cluster goes with the Cluster where Jobs and the records of HookJobs do not: it
// keeps clusterctl from moving the Cluster while a Job runs, and says which have succeeded.

// blockMoveAnnotation makes clusterctl wait with the move of the Cluster that an object belongs to. Its value is the
// last Job that was started.
const blockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

// blocksLabel is on the ClusterRecords that have the annotation.
const blocksLabel = ownPrefix + "blocks-move"

// movedAnnotation of a Job is what its success is recorded under in the ClusterRecord.
const movedAnnotation = ownPrefix + "moved-key"

// madeByAnnotation of a ClusterRecord has the UID of the HookJob whose Job has succeeded last, and that of the Cluster
// then: with the HookJob, what its Jobs have done is forgotten, but not with a move.
const madeByAnnotation = ownPrefix + "made-by"

// madeBy returns the value of the annotation.
func madeBy(hookJob types.UID, record *v1alpha1.ClusterRecord) string {
	return string(hookJob) + "/" + string(owner.ClusterUID(record))
}

// isForgotten reports whether a ClusterRecord is of an earlier HookJob of the name, in this management cluster.
func isForgotten(record *v1alpha1.ClusterRecord, hookJob types.UID) bool {
	of, cluster, known := strings.Cut(record.Annotations[madeByAnnotation], "/")
	return known && of != string(hookJob) && cluster == string(owner.ClusterUID(record))
}

// movedKey returns the digest of the hook and once by which a success is known after a move, which changes UIDs. It is
// empty if the hook is about a Machine and not called again after it, or about a Cluster that is gone, whose name
// another one may have.
func (r *run) movedKey() string {
	if _, ok := r.message.(*machinesv1alpha1.AfterClusterDeleteRequest); ok {
		return ""
	}
	replaced := []string{r.clusterUID, "cluster"}
	if r.clusterUID == "" {
		replaced = nil
	}
	if r.machine != nil {
		if _, ok := r.message.(interface{ GetRemediationId() string }); !ok {
			return ""
		}
		replaced = append(replaced, string(r.machine.GetUID()), "machine")
	}
	once := strings.NewReplacer(replaced...).Replace(r.once)
	digest := sha256.Sum256([]byte(r.hook + "\x00" + once))
	return hex.EncodeToString(digest[:keyBytes])
}

// clusterRecord returns the record of a HookJob and a Cluster, namespace/name. It has no UID if there is none.
func (c *Cluster) clusterRecord(ctx context.Context, hookJob, cluster string) (*v1alpha1.ClusterRecord, error) {
	record := &v1alpha1.ClusterRecord{}
	var found bool
	if record.Namespace, record.Spec.ClusterName, found = strings.Cut(cluster, "/"); !found || record.Namespace == "" {
		return record, nil
	}
	record.Name = owner.RecordName("job." + hookJob + "." + record.Spec.ClusterName)
	err := c.API.Get(ctx, client.ObjectKeyFromObject(record), record)
	return record, client.IgnoreNotFound(err)
}

// movedHere reports whether the success of a run was recorded, maybe in another management cluster.
func (c *Cluster) movedHere(ctx context.Context, r *run) (bool, error) {
	key := r.movedKey()
	record, err := c.clusterRecord(ctx, r.hookJob, r.cluster.String())
	if err != nil || key == "" || record.UID == "" || record.Spec.Job == nil {
		return false, err
	}
	if uid := owner.ClusterUID(record); uid != "" && r.clusterUID != "" && string(uid) != r.clusterUID {
		return false, nil // of a Cluster that is gone
	}
	if isForgotten(record, r.hookJobUID) {
		return false, nil
	}
	return slices.Contains(record.Spec.Job.Succeeded, key), nil
}

// block makes clusterctl wait until a Job, which was made and not started yet, has ended.
func (c *Cluster) block(ctx context.Context, job *batchv1.Job) error {
	if isAfterDelete(job) {
		return nil // there is nothing to move
	}
	return c.changeRecord(ctx, job, func(record *v1alpha1.ClusterRecord) bool {
		value := blockedBy(job)
		if record.Annotations[blockMoveAnnotation] == value {
			return false
		}
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, blockMoveAnnotation, value)
		metav1.SetMetaDataLabel(&record.ObjectMeta, blocksLabel, "")
		return true
	})
}

// blockedBy returns the value of the annotation. With the UID, it is another one if the Job is made again.
func blockedBy(job *batchv1.Job) string {
	return fmt.Sprintf("%s/%s/%s", job.Namespace, job.Name, job.UID)
}

// keepForMove notes in the ClusterRecord that a Job has succeeded.
func (c *Cluster) keepForMove(ctx context.Context, job *batchv1.Job) error {
	key, by := job.Annotations[movedAnnotation], metav1.GetControllerOf(job)
	if key == "" || by == nil {
		return nil
	}
	return c.changeRecord(ctx, job, func(record *v1alpha1.ClusterRecord) bool {
		of := record.Spec.Job
		if isForgotten(record, by.UID) {
			of.Succeeded = nil
		}
		if made := madeBy(by.UID, record); record.Annotations[madeByAnnotation] != made {
			metav1.SetMetaDataAnnotation(&record.ObjectMeta, madeByAnnotation, made)
		} else if slices.Contains(of.Succeeded, key) {
			return false
		}
		of.Succeeded = append(slices.DeleteFunc(of.Succeeded, func(k string) bool { return k == key }), key)
		of.Succeeded = of.Succeeded[max(len(of.Succeeded)-limits.JobRecordsOfCluster, 0):]
		return true
	})
}

// changeRecord changes the ClusterRecord of a Job, which is made if there is none and the Cluster exists.
func (c *Cluster) changeRecord(
	ctx context.Context, job *batchv1.Job, change func(*v1alpha1.ClusterRecord) (changed bool),
) error {
	hookJob, cluster := job.Labels[HookJobLabel], job.Annotations[clusterAnnotation]
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, again, func() error {
		record, err := c.clusterRecord(ctx, hookJob, cluster)
		if err != nil || record.Name == "" {
			return err
		}
		absent := record.UID == ""
		if absent {
			found, err := owner.Find(ctx, c.API,
				types.NamespacedName{Namespace: record.Namespace, Name: record.Spec.ClusterName})
			if err != nil || found == nil {
				return err
			}
			record.Labels = map[string]string{HookJobLabel: hookJob}
			owner.SetCluster(record, found)
			record.Spec.Job = &v1alpha1.ClusterJobs{HookJob: hookJob}
		}
		if record.Spec.Job == nil || !change(record) {
			return nil
		}
		if absent {
			return c.API.Create(ctx, record)
		}
		return c.API.Update(ctx, record)
	})
}

// unblock lets clusterctl move the Clusters whose Jobs have ended.
func (c *Cluster) unblock(ctx context.Context, jobs []batchv1.Job) error {
	list := &v1alpha1.ClusterRecordList{}
	if err := c.API.List(ctx, list, client.HasLabels{blocksLabel}); err != nil {
		return fmt.Errorf("list ClusterRecords: %w", err)
	}
	var errs []error
	for i := range list.Items {
		record := &list.Items[i]
		value := record.Annotations[blockMoveAnnotation]
		if slices.ContainsFunc(jobs, func(job batchv1.Job) bool {
			return isUnsettled(&job) && job.Labels[HookJobLabel] == record.Labels[HookJobLabel] &&
				job.Annotations[clusterAnnotation] == record.Namespace+"/"+record.Spec.ClusterName
		}) {
			continue
		}
		// The last one may have been started a moment ago.
		if of := strings.Split(value, "/"); len(of) == 3 {
			job := &batchv1.Job{}
			err := c.API.Get(ctx, client.ObjectKey{Namespace: of[0], Name: of[1]}, job)
			if client.IgnoreNotFound(err) != nil || err == nil && blockedBy(job) == value && isUnsettled(job) {
				errs = append(errs, client.IgnoreNotFound(err))
				continue
			}
		}
		delete(record.Annotations, blockMoveAnnotation)
		delete(record.Labels, blocksLabel)
		if err := c.API.Update(ctx, record); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("update ClusterRecord: %w", err))
		}
	}
	return errors.Join(errs...)
}

// isUnsettled reports whether a Job runs, or what became of it is not recorded yet.
func isUnsettled(job *batchv1.Job) bool {
	_, settled := job.Annotations[messageAnnotation]
	return !settled
}

// forgetMoved removes the successes of a HookJob from the ClusterRecord of a Cluster, and returns how many there were.
func (c *Cluster) forgetMoved(ctx context.Context, hookJob, cluster string) (n int, err error) {
	return n, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		record, err := c.clusterRecord(ctx, hookJob, cluster)
		if err != nil || record.Spec.Job == nil || len(record.Spec.Job.Succeeded) == 0 {
			return err
		}
		n, record.Spec.Job.Succeeded = len(record.Spec.Job.Succeeded), nil
		return c.API.Update(ctx, record)
	})
}
