// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
)

// defaultAttempt is how long an attempt may take unless a remediation says so.
const defaultAttempt = 10 * time.Minute

// outcome is what a call has shown.
type outcome struct {
	retry int32 // the handlers hold, and want to be asked again after so many seconds
	// refused means that a handler answered Failure, and unknown that there is none for the Machine.
	refused, unknown bool
	failed           bool // the call had no answer
	message          string
}

// outcomeOf reads an answer of Hooks.Call.
func outcomeOf(answer proto.Message, holders []string, err error) outcome {
	o := outcome{message: said(answer, holders, err)}
	switch {
	case err != nil:
		o.failed, o.unknown = true, hook.KindOf(err) == hook.UnknownHandler
		return o
	case len(holders) == 0:
		o.message = ""
	}
	_, o.refused = catalog.FailureOf(answer)
	if blocking, ok := answer.(interface{ GetRetryAfterSeconds() int32 }); ok && !o.refused {
		o.retry = blocking.GetRetryAfterSeconds()
	}
	return o
}

// decision is what follows for a remediation: how far it is, what it waits for, and when to look at it again.
type decision struct {
	progress remediationv1.RemediationProgress
	message  string
	failed   bool // an attempt has failed
	next     reconcile.Result
}

// approve decides by what handlers of BeforeMachineRemediation say.
func (d *decision) approve(o *remediationv1.HookgateRemediation, out outcome, now time.Time) {
	d.progress.Phase, d.message = remediationv1.Pending, out.message
	switch {
	case out.failed, out.refused:
		d.next = failing(o.CreationTimestamp.Time, now)
	case out.retry > 0:
		d.next = requeueAfter(out.retry)
	default:
		d.begin(1, now)
		d.message = "handlers of RemediateMachine are called"
	}
}

// begin begins an attempt.
func (d *decision) begin(attempt int32, now time.Time) {
	d.progress.Phase, d.progress.Attempt = remediationv1.Remediating, attempt
	d.progress.AttemptStartTime = metav1.NewTime(now)
	d.next = reconcile.Result{RequeueAfter: leastWait} // the write wakes it up before
}

// remediated decides by what RemediateMachine says.
func (d *decision) remediated(o *remediationv1.HookgateRemediation, out outcome, now time.Time) {
	end := d.progress.AttemptStartTime.Add(attemptTime(o))
	d.message = out.message
	switch {
	case out.unknown:
		d.fail(nil, out.message, now)
	case out.failed:
		d.next = failing(d.progress.AttemptStartTime.Time, now)
	case out.refused:
		d.fail(o, out.message, now)
	case out.retry > 0:
		d.next = requeueAfter(out.retry)
	default:
		d.progress.Phase = remediationv1.Verifying
		d.message = "the Machine was remediated, and has to become healthy"
		d.next = reconcile.Result{RequeueAfter: end.Sub(now)}
	}
	d.next.RequeueAfter = min(d.next.RequeueAfter, max(end.Sub(now), leastWait))
}

// timedOut reports whether the time of an attempt is over, and decides what follows then.
func (d *decision) timedOut(o *remediationv1.HookgateRemediation, now time.Time) bool {
	limit := attemptTime(o)
	left := d.progress.AttemptStartTime.Add(limit).Sub(now)
	if left > 0 {
		d.message = "the Machine was remediated, and has to become healthy"
		d.next = reconcile.Result{RequeueAfter: max(left, leastWait)}
		return false
	}
	d.fail(o, fmt.Sprintf("the Machine is not healthy %s after the attempt began", limit), now)
	return true
}

// fail ends an attempt: there is another one, or the owner of the Machine has to remediate it, as always without o.
func (d *decision) fail(o *remediationv1.HookgateRemediation, why string, now time.Time) {
	d.failed = true
	attempts := int32(0)
	if o != nil {
		attempts = 1 + ptr.Deref(o.Spec.RetryLimit, 0)
	}
	d.message = fmt.Sprintf("attempt %d: %s", d.progress.Attempt, why)
	if d.progress.Attempt < attempts {
		d.begin(d.progress.Attempt+1, now)
		return
	}
	d.progress.Phase, d.next = remediationv1.OwnerRemediating, reconcile.Result{}
	d.message += "; " + ownerIsTo
}

// ownerIsTo says what follows when there are no more attempts.
const ownerIsTo = "the owner of the Machine has to remediate it"

// attemptTime returns how long an attempt may take.
func attemptTime(o *remediationv1.HookgateRemediation) time.Duration {
	if s := o.Spec.TimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultAttempt
}
