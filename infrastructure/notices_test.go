// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// machineSaying returns a machine with conditions in the form "Ready=False:Reason", which are as old as age.
func machineSaying(now time.Time, age time.Duration, conditions ...string) *infrav1.HookgateMachine {
	m := &infrav1.HookgateMachine{}
	m.UID, m.Spec.ProviderID = "u", "fake://m"
	for _, c := range conditions {
		if c == "provisioned" {
			m.Status.Initialization.Provisioned = new(true)
			continue
		}
		kind, rest, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(rest, ":")
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "why " + reason,
			LastTransitionTime: metav1.NewTime(now.Add(-age)),
		})
	}
	return m
}

func TestNotices(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		reason        string
		before, after string
		age           time.Duration
		want          []string
	}{
		{"a new object", "", "Ready=False:Provisioning", 0, nil},
		{"nothing new", "Ready=False:QuotaExceeded Synced=False:CallFailed", "Ready=False:QuotaExceeded Synced=False:CallFailed", 0, nil},
		{"made", "Ready=False:Provisioning", "provisioned Ready=True:Ready Synced=True:Synced", 0,
			[]string{"Normal Provisioned the extension has made it: fake://m"}},
		{"failed", "Ready=False:Provisioning", "Ready=False:QuotaExceeded", 0, []string{"Warning QuotaExceeded why QuotaExceeded"}},
		{"failed otherwise", "Ready=False:QuotaExceeded", "Ready=False:InstanceGone", 0, []string{"Warning InstanceGone why InstanceGone"}},
		{"in the course of things", "Ready=True:Ready", "Ready=False:Scaling", 0, nil},
		{"mended", "provisioned Ready=False:Failed", "provisioned Ready=True:Ready", 0, []string{"Normal Ready the object is ready again"}},
		{"deleted", "provisioned Ready=True:Ready", "provisioned Ready=False:Deleting", 0, []string{"Normal Deleting why Deleting"}},
		{"not called", "Synced=True:Synced", "Synced=False:CallFailed", 0, []string{"Warning CallFailed why CallFailed"}},
		{"called again", "Synced=False:CallFailed", "Synced=True:Synced", 0, []string{"Normal Synced the extension answers again"}},
		{"the same in both conditions", "", "Ready=False:ClassNotFound Synced=False:ClassNotFound", 0,
			[]string{"Warning ClassNotFound why ClassNotFound"}},
		{"not ready, not for long", "Ready=False:Provisioning", "Ready=False:Provisioning", notReadyAfter - time.Millisecond, nil},
		{"not ready for long", "Ready=False:Provisioning", "Ready=False:Provisioning", notReadyAfter,
			[]string{"Warning NotReadyForLong not ready for more than 15 minutes: Provisioning: why Provisioning"}},
		{"paused for long", "Ready=False:Provisioning Paused=True:Paused", "Ready=False:Provisioning Paused=True:Paused", notReadyAfter, nil},
	} {
		var got []string
		for _, n := range notices(machineSaying(now, c.age, strings.Fields(c.before)...), machineSaying(now, c.age, strings.Fields(c.after)...), now) {
			got = append(got, n.kind+" "+n.reason+" "+n.note)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
	}
}

// A reason is an event once in ten minutes, for each object, and its note and reason have room.
func TestEventsAreBounded(t *testing.T) {
	now := time.Now()
	fake := events.NewFakeRecorder(10)
	r := newRecorder(fake, func() time.Time { return now })
	m, other := machineSaying(now, 0), machineSaying(now, 0)
	other.UID = "other"
	n := notice{"Warning", "Failed", "Reconcile", strings.Repeat("x", limits.EventNoteBytes+1) + "\x1b"}
	r.record(m, n)
	r.record(m, n)
	r.record(other, n)
	now = now.Add(limits.EventInterval - time.Millisecond)
	r.record(m, n)
	if got := len(fake.Events); got != 2 {
		t.Errorf("%d events, want one of each object", got)
	}
	now = now.Add(time.Millisecond)
	n.reason = strings.Repeat("R", eventReason+1)
	r.record(m, n)
	n.reason = "Failed"
	r.record(m, n)
	if got := len(fake.Events); got != 4 {
		t.Errorf("%d events, want two more", got)
	}
	for range 4 {
		e := <-fake.Events
		_, rest, _ := strings.Cut(e, " ")
		reason, note, _ := strings.Cut(rest, " ")
		if len(reason) > eventReason || len(note) > limits.EventNoteBytes || strings.Contains(note, "\x1b") {
			t.Errorf("the event has a reason of %d and a note of %d bytes", len(reason), len(note))
		}
	}
}
