// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/registry"
)

// Job answers one hook by Jobs. It is immutable, and safe for concurrent use.
type Job struct {
	name       string
	uid        types.UID
	hook       *catalog.Hook
	inPlace    bool // the hook is UpdateMachine
	remediates bool // the hook is RemediateMachine
	untilDone  bool // the hook is AfterClusterDelete, which is called until its Job has succeeded
	codec      *codec.Codec
	cluster    *Cluster           // nil where Jobs are only compiled
	namespace  string             // or BesideCluster
	once       *policy.Expression // nil for the default
	kubeconfig bool
	fails      bool // a Job that has failed fails the call
	retry      int32
	deadline   time.Duration
	template   *batchv1.JobTemplateSpec
}

var _ registry.Answerer = (*Job)(nil)

// Kind implements registry.Answerer.
func (*Job) Kind() string { return Kind }

// failure is a failure of a call that the answer says, because whoever wrote the HookJob or the request has to change
// it.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func failuref(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// state is what a Job means for a caller.
type state int

const (
	done    state = iota
	running       // it was made, and has not ended
	waiting       // it cannot be made yet, so that a caller that does not wait has to ask again
	failed
)

// Answer implements registry.Answerer. An expression that cannot be evaluated is an error of kind Policy; an API server
// that cannot be asked is one of kind Unreachable.
func (j *Job) Answer(ctx context.Context, request proto.Message, guard policy.Guard) (proto.Message, error) {
	is, message, err := j.answer(ctx, request, guard)
	var refused *failure
	var evaluation *policy.EvaluationError
	switch {
	case errors.As(err, &refused):
		return j.hook.NewAnswer(catalog.Failure, refused.text, 0), nil
	case errors.As(err, &evaluation):
		return nil, hook.Errorf(hook.Policy, "HookJob %q: %s", j.name, evaluation).WithCause(evaluation.Cause)
	case err != nil:
		return nil, err
	case is == waiting && !j.hook.Blocking, is == running && j.untilDone:
		return nil, hook.Errorf(hook.Unreachable, "HookJob %q: %s", j.name, message)
	case is == failed && j.fails:
		return j.hook.NewAnswer(catalog.Failure, message, 0), nil
	case is == done || !j.hook.Blocking:
		return j.hook.NewAnswer(catalog.Success, message, 0), nil
	}
	return j.hook.NewAnswer(catalog.Success, message, j.retry), nil
}

// answer returns the state of the Job that the request is answered by, and a message. It makes the Job if there is
// none, and its success was not recorded.
func (j *Job) answer(ctx context.Context, request proto.Message, guard policy.Guard) (state, string, error) {
	if j.cluster == nil {
		return 0, "", hook.Errorf(hook.Internal, "HookJob %q: the gateway has no cluster", j.name)
	}
	r, err := j.newRun(ctx, request, guard)
	if err != nil {
		return 0, "", err
	}
	job, err := j.cluster.cached(ctx, r)
	if apierrors.IsNotFound(err) {
		recorded, failed := j.cluster.recorded(ctx, r)
		if failed != nil || recorded {
			return done, "", failed
		}
		if j.inPlace || j.remediates {
			if left, failed := j.cluster.endOthers(ctx, r); failed != nil || left != "" {
				why := "the desired state has changed"
				if j.remediates {
					why = "another attempt has begun"
				}
				return waiting, fmt.Sprintf("Job %s is removed: %s", left, why), failed
			}
		}
		if n, failed := j.cluster.unfinished(ctx, j.name); failed != nil || n >= limits.JobsUnfinished {
			return waiting, fmt.Sprintf("HookJob %q has %d Jobs that have not ended", j.name, limits.JobsUnfinished), failed
		}
		job, err = j.create(ctx, r)
	}
	if err != nil {
		return 0, "", j.cluster.explain("make or read Job "+r.String(), err)
	}
	if isOfEarlier(job, j.uid) {
		return waiting, fmt.Sprintf("Job %s of an earlier HookJob %q is being deleted", r, j.name), nil
	}
	if job.Annotations[onceAnnotation] != r.once || job.Labels[HookJobLabel] != j.name {
		return 0, "", failuref("Job %s was not made for this request: delete the Job", r)
	}
	return j.state(ctx, r, job)
}

// state starts a Job that was made, and reads what became of one that has ended.
func (j *Job) state(ctx context.Context, r *run, job *batchv1.Job) (state, string, error) {
	ended, succeeded := hasEnded(job)
	message, settled := job.Annotations[messageAnnotation]
	if ended && !settled {
		var err error
		if message, err = j.cluster.settle(ctx, job); err != nil {
			return 0, "", j.cluster.explain("record the result of Job "+r.String(), err)
		}
	}
	switch {
	case ended && succeeded:
		return done, message, nil
	case ended && (!settled || job.DeletionTimestamp == nil):
		return failed, fmt.Sprintf("Job %s failed: %s", r, message), nil
	case job.DeletionTimestamp != nil:
		return waiting, fmt.Sprintf("Job %s is being deleted", r), nil
	case job.Annotations[startedAnnotation] == "":
		if err := j.start(ctx, r, job); err != nil {
			return 0, "", j.cluster.explain("start Job "+r.String(), err)
		}
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		return running, fmt.Sprintf("Job %s is suspended", r), nil
	case job.Annotations[problemAnnotation] != "":
		return running, fmt.Sprintf("Job %s: %s", r, job.Annotations[problemAnnotation]), nil
	}
	return running, fmt.Sprintf("Job %s runs", r), nil
}

// hasEnded reports whether a Job has ended, and whether it succeeded.
func hasEnded(job *batchv1.Job) (ended, succeeded bool) {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Status == "True" {
			switch c.Type {
			case batchv1.JobComplete:
				return true, true
			case batchv1.JobFailed:
				return true, false
			}
		}
	}
	return false, false
}
