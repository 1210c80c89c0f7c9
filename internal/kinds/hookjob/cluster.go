// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// The labels and annotations of Jobs.
const (
	// HookJobLabel is the name of the HookJob, of Jobs, their Secrets, and the record of successes.
	HookJobLabel = ownPrefix + "hook-job"
	// hookLabel is the hook.
	hookLabel = ownPrefix + "hook"
	// machineLabel is the UID of the Machine that a Job is for.
	machineLabel = ownPrefix + "machine-uid"

	onceAnnotation       = ownPrefix + "once"        // the value of once
	clusterAnnotation    = ownPrefix + "cluster"     // the Cluster, namespace/name
	clusterUIDAnnotation = ownPrefix + "cluster-uid" // its UID, if that is known
	machineAnnotation    = ownPrefix + "machine"     // the Machine, namespace/name
	startedAnnotation    = ownPrefix + "started"     // its Secret was made
	problemAnnotation    = ownPrefix + "problem"     // what keeps its last Pod from succeeding, or did
	messageAnnotation    = ownPrefix + "message"     // it has ended, and its success is recorded
)

// MachineKind is Cluster API's kind, of which single objects are read.
var MachineKind = clusterv1.GroupVersion.WithKind("Machine")

// Cluster is the cluster that Jobs run in, for all HookJobs. It is safe for concurrent use.
type Cluster struct {
	// Jobs reads Jobs with HookJobLabel from a cache, in which they need not have a template.
	Jobs client.Reader
	// API reads and writes all else, past every cache.
	API client.Client
	// Namespace is where the successes of each HookJob are recorded.
	Namespace string
	Logger    *slog.Logger
	// Event writes an event about a HookJob because of one of its Jobs, for a Cluster, namespace/name. It does not block,
	// and may be nil.
	Event func(hookJob, cluster, reason, message string)
}

// The reasons of events about HookJobs.
const (
	failingReason = "JobFailing" // a Job goes on, but something keeps it from succeeding
	failedReason  = "JobFailed"
)

// event writes an event about a Job.
func (c *Cluster) event(job *batchv1.Job, reason, message string) {
	if c.Event != nil {
		c.Event(job.Labels[HookJobLabel], job.Annotations[clusterAnnotation], reason,
			redact.Text(fmt.Sprintf("Job %s/%s: %s", job.Namespace, job.Name, message)))
	}
}

// cached returns the Job of a run from the cache.
func (c *Cluster) cached(ctx context.Context, r *run) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, c.Jobs.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.job}, job)
}

// explain returns the error of a request to the API server: what a user has to change is a failure, and all else an
// error of kind Unreachable. operation says what was tried.
func (c *Cluster) explain(operation string, err error) error {
	switch {
	case err == nil, isOwn(err):
		return err
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
		return failuref("%s: %v", operation, err)
	}
	return hook.Errorf(hook.Unreachable, "%s: the request to the API server failed", operation).WithCause(err)
}

// unfinished returns how many Jobs of a HookJob have not ended: whoever calls hooks could make any number.
func (c *Cluster) unfinished(ctx context.Context, hookJob string) (n int, err error) {
	var list batchv1.JobList
	err = c.Jobs.List(ctx, &list, client.MatchingLabels{HookJobLabel: hookJob}, client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		if ended, _ := hasEnded(&list.Items[i]); !ended {
			n++
		}
	}
	return n, c.explain("list Jobs", err)
}

// endOthers deletes the Jobs for another desired state of the Machine of a run, and the records of them. It returns one
// that is still there.
func (c *Cluster) endOthers(ctx context.Context, r *run) (left string, err error) {
	var list batchv1.JobList
	uid := string(r.machine.GetUID())
	if err := c.Jobs.List(ctx, &list, client.MatchingLabels{HookJobLabel: r.hookJob, machineLabel: uid}); err != nil {
		return "", c.explain("list Jobs", err)
	}
	for i := range list.Items {
		job := &list.Items[i]
		if job.Annotations[onceAnnotation] == r.once {
			continue
		}
		if left == "" || left > job.Namespace+"/"+job.Name {
			left = job.Namespace + "/" + job.Name
		}
		if err := c.delete(ctx, job); err != nil {
			return "", c.explain("delete Job "+job.Namespace+"/"+job.Name, err)
		}
	}
	return left, c.explain("forget what was recorded of Machine "+r.machine.GetName(),
		c.forget(ctx, r.hookJob, func(key string, s *success) bool { return s.UID == uid && key != r.key }))
}

// delete deletes a Job. It is there until its Pods are not.
func (c *Cluster) delete(ctx context.Context, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(c.API.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: &job.UID}))
}
