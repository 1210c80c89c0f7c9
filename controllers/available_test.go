// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
)

// fixedCircuits has the same status for all extensions, of the handler if it names one.
type fixedCircuits struct {
	status  circuit.Status
	handler string
}

func (c fixedCircuits) Circuit(string) (circuit.Status, string) { return c.status, c.handler }
func (fixedCircuits) Notify(func(string))                       {}

func TestAvailable(t *testing.T) {
	now := metav1.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	open := func(since, failed time.Duration) circuit.Status {
		return circuit.Status{State: circuit.Open, Kind: hook.Timeout, Since: ago(since), Failed: ago(failed)}
	}
	halfOpen := open(time.Hour, time.Second)
	halfOpen.State = circuit.HalfOpen
	const (
		isOpen      = "False CircuitOpen Calls to the extension fail with Timeout. The gateway refuses these calls"
		isClosed    = "True CircuitClosed"
		isIdle      = "Unknown CircuitHalfOpen Calls to the extension failed with Timeout. The extension answers"
		isOfHandler = `False HandlerCircuitOpen Calls to the handler "v.a" fail with Timeout. The gateway refuses these calls`
		isLost      = "Unknown NotDiscovered The extension does not answer"
	)
	found := func(o *observation) { o.found = &extension.Discovered{} }
	problem := func(o *observation) { o.problem = "connection refused" }
	for name, tc := range map[string]struct {
		reason  string
		status  circuit.Status
		handler string
		before  metav1.ConditionStatus // "" for no condition
		observe func(*observation)
		want    string        // "" for no condition; "as before"
		settles time.Duration // when to look again
	}{
		"NeverOpened":   {"what is discovered and never failed is available", circuit.Status{}, "", "", found, isClosed, 0},
		"NotDiscovered": {"without an answer and without calls nothing is known", circuit.Status{}, "", metav1.ConditionTrue, problem, isLost, 0},
		"JustOpened":    {"it may be a moment", open(9*time.Second, 0), "", metav1.ConditionTrue, found, "as before", time.Second},
		"FirstOpened":   {"nor does it begin with one", open(9*time.Second, 0), "", "", problem, "", time.Second},
		"Opened":        {"it has lasted", open(10*time.Second, 0), "", metav1.ConditionTrue, found, isOpen, 0},
		"StillOpen":     {"probes fail", open(time.Hour, 119*time.Second), "", metav1.ConditionFalse, found, isOpen, 0},
		"Probing":       {"a probe is under way", halfOpen, "", metav1.ConditionFalse, found, isOpen, 0},
		"Idle":          {"nothing has failed for long, and discovery works", open(time.Hour, 2*time.Minute), "", metav1.ConditionFalse, found, isIdle, 0},
		"IdleAndDown":   {"nothing has failed for long, but discovery does", open(time.Hour, time.Hour), "", metav1.ConditionFalse, problem, isOpen, 0},
		"JustClosed":    {"it may fail again", circuit.Status{Since: ago(0)}, "", metav1.ConditionFalse, found, "as before", settleTime},
		"Closed":        {"it has lasted", circuit.Status{Since: ago(settleTime)}, "", metav1.ConditionFalse, found, isClosed, 0},
		"OfHandler":     {"one handler is refused, whatever the others do", open(time.Hour, time.Hour), "v.a", metav1.ConditionTrue, found, isOfHandler, 0},
		"JustOfHandler": {"it may be a moment, too", open(9*time.Second, 0), "v.a", metav1.ConditionTrue, found, "as before", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{}
			if tc.before != "" {
				meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: availableCondition, Status: tc.before, Reason: "Before"})
			}
			o := observation{config: config, hooks: catalog.New(), now: now, leads: true}
			tc.observe(&o)
			(&reconciler{circuits: fixedCircuits{tc.status, tc.handler}}).observeAvailability(&o)
			got := ""
			if c := meta.FindStatusCondition(desired(&o).Status.Conditions, availableCondition); c != nil {
				got = strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
			}
			want := tc.want
			if want == "as before" {
				want = string(tc.before) + " Before"
			}
			if !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s: got %q, want %q", tc.reason, got, want)
			}
			if o.settles != tc.settles {
				t.Errorf("%s: looks again after %s, want %s", tc.reason, o.settles, tc.settles)
			}
		})
	}
}

// Followers, read-only replicas and paused ExtensionConfigs leave the condition as it is.
func TestAvailableIsTheLeaders(t *testing.T) {
	status := circuit.Status{State: circuit.Open, Since: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		r *reconciler
		o observation
	}{
		"Follower": {&reconciler{circuits: fixedCircuits{status: status}}, observation{}},
		"ReadOnly": {&reconciler{circuits: fixedCircuits{status: status}, readOnly: true}, observation{leads: true}},
		"Paused":   {&reconciler{circuits: fixedCircuits{status: status}}, observation{leads: true, paused: true}},
		"None":     {&reconciler{}, observation{leads: true}},
	} {
		tc.o.config, tc.o.now = &runtimev1.ExtensionConfig{}, metav1.Now()
		if tc.r.observeAvailability(&tc.o); tc.o.available != nil {
			t.Errorf("%s: got %+v", name, tc.o.available)
		}
	}
}
