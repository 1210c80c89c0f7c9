// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
)

// TestDecisions has a row for each answer in each phase of a remediation that allows two attempts of a minute.
func TestDecisions(t *testing.T) {
	const (
		success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
		failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
	)
	unreachable := hook.Errorf(hook.Unreachable, `handler "v.a": down`)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	ask := func(status hooksv1alpha1.ResponseStatus, message string, retry int32) proto.Message {
		return &machinesv1alpha1.RemediateMachineResponse{Status: status, Message: message, RetryAfterSeconds: retry}
	}
	for name, c := range map[string]struct {
		phase   remediationv1.Phase
		attempt int32
		began   time.Duration // ago
		answer  proto.Message
		holders []string
		err     error

		wantPhase   remediationv1.Phase
		wantAttempt int32
		wantMessage string
		least, most time.Duration // until the next look
	}{
		"let go": {
			answer:    ask(success, "fine", 0),
			wantPhase: remediationv1.Remediating, wantAttempt: 1, wantMessage: "handlers of RemediateMachine are called",
			least: time.Second, most: time.Second,
		},
		"held": {
			answer: ask(success, "drains", 7), holders: []string{"v.a"},
			wantPhase: remediationv1.Pending, wantMessage: "v.a: drains", least: 7 * time.Second, most: 7 * time.Second,
		},
		"refused": {
			answer: ask(failure, `handler "v.a": no`, 0), holders: []string{"v.a"},
			wantPhase: remediationv1.Pending, wantMessage: `handler "v.a": no`, least: time.Minute, most: 66 * time.Second,
		},
		"not answered": {
			err:       unreachable,
			wantPhase: remediationv1.Pending, wantMessage: `handler "v.a": down`, least: time.Minute, most: 66 * time.Second,
		},
		"works": {
			phase: remediationv1.Remediating, attempt: 1, answer: ask(success, "boots", 5), holders: []string{"v.a"},
			wantPhase: remediationv1.Remediating, wantAttempt: 1, wantMessage: "v.a: boots", least: 5 * time.Second, most: 5 * time.Second,
		},
		"works beyond the attempt": {
			phase: remediationv1.Remediating, attempt: 1, began: 50 * time.Second, answer: ask(success, "boots", 600), holders: []string{"v.a"},
			wantPhase: remediationv1.Remediating, wantAttempt: 1, wantMessage: "v.a: boots", least: 10 * time.Second, most: 10 * time.Second,
		},
		"done": {
			phase: remediationv1.Remediating, attempt: 1, began: 20 * time.Second, answer: ask(success, "", 0),
			wantPhase: remediationv1.Verifying, wantAttempt: 1, wantMessage: "the Machine was remediated, and has to become healthy",
			least: 40 * time.Second, most: 40 * time.Second,
		},
		"says nothing about the Machine": {
			phase: remediationv1.Remediating, attempt: 1, began: 20 * time.Second, err: unreachable,
			wantPhase: remediationv1.Remediating, wantAttempt: 1, wantMessage: `handler "v.a": down`, least: 5 * time.Second, most: 6 * time.Second,
		},
		"the first attempt fails": {
			phase: remediationv1.Remediating, attempt: 1, answer: ask(failure, "no power", 0), holders: []string{"v.a"},
			wantPhase: remediationv1.Remediating, wantAttempt: 2, wantMessage: "attempt 1: no power", least: time.Second, most: time.Second,
		},
		"the last attempt fails": {
			phase: remediationv1.Remediating, attempt: 2, answer: ask(failure, "no power", 0), holders: []string{"v.a"},
			wantPhase: remediationv1.OwnerRemediating, wantAttempt: 2,
			wantMessage: "attempt 2: no power; the owner of the Machine has to remediate it",
		},
		"nobody can do it": {
			phase: remediationv1.Remediating, attempt: 1, err: hook.Errorf(hook.UnknownHandler, "no handler of RemediateMachine matches"),
			wantPhase: remediationv1.OwnerRemediating, wantAttempt: 1,
			wantMessage: "attempt 1: no handler of RemediateMachine matches; the owner of the Machine has to remediate it",
		},
		"not healthy after the first": {
			phase: remediationv1.Verifying, attempt: 1, began: time.Minute,
			wantPhase: remediationv1.Remediating, wantAttempt: 2,
			wantMessage: "attempt 1: the Machine is not healthy 1m0s after the attempt began", least: time.Second, most: time.Second,
		},
		"not healthy yet": {
			phase: remediationv1.Verifying, attempt: 1, began: 45 * time.Second,
			wantPhase: remediationv1.Verifying, wantAttempt: 1, wantMessage: "the Machine was remediated, and has to become healthy",
			least: 15 * time.Second, most: 15 * time.Second,
		},
		"not healthy after the last": {
			phase: remediationv1.Verifying, attempt: 2, began: time.Hour,
			wantPhase: remediationv1.OwnerRemediating, wantAttempt: 2,
			wantMessage: "attempt 2: the Machine is not healthy 1m0s after the attempt began; the owner of the Machine has to remediate it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &remediationv1.HookgateRemediation{}
			o.CreationTimestamp = before(time.Hour)
			o.Spec.RetryLimit, o.Spec.TimeoutSeconds = new(int32(1)), new(int32(60))
			d := decision{}
			d.progress.Phase, d.progress.Attempt, d.progress.AttemptStartTime = c.phase, c.attempt, before(c.began)
			switch c.phase {
			case remediationv1.Remediating:
				d.remediated(o, outcomeOf(c.answer, c.holders, c.err), now)
			case remediationv1.Verifying:
				d.timedOut(o, now)
			default:
				d.approve(o, outcomeOf(c.answer, c.holders, c.err), now)
			}
			if d.progress.Phase != c.wantPhase || d.progress.Attempt != c.wantAttempt || d.message != c.wantMessage {
				t.Errorf("got %s, attempt %d, %q; want %s, attempt %d, %q", d.progress.Phase, d.progress.Attempt, d.message,
					c.wantPhase, c.wantAttempt, c.wantMessage)
			}
			if d.next.RequeueAfter < c.least || d.next.RequeueAfter > c.most {
				t.Errorf("the next look is after %s, want %s to %s", d.next.RequeueAfter, c.least, c.most)
			}
		})
	}
}
