// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// unhealthy creates a Machine that a MachineHealthCheck has found unhealthy, and its remediation.
func (w *fixture) unhealthy(name string, spec remediationv1.HookgateRemediationSpec) *remediationv1.HookgateRemediation {
	w.t.Helper()
	m := w.machine(name, "held")
	w.status(name, func(s *clusterv1.MachineStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "UnhealthyNode",
		})
	})
	o := &remediationv1.HookgateRemediation{Spec: spec}
	o.Name = name
	o.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID,
	}}
	w.create(o)
	return o
}

// remediates waits until a remediation is in a phase, with a message.
func (w *fixture) remediates(name string, phase remediationv1.Phase, message string) *remediationv1.HookgateRemediation {
	w.t.Helper()
	o := &remediationv1.HookgateRemediation{}
	w.eventually(fmt.Sprintf("%s is %s: %s", name, phase, message), func() (string, bool) {
		if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, o); err != nil {
			return err.Error(), false
		}
		c := meta.FindStatusCondition(o.Status.Conditions, remediationv1.RemediatingCondition)
		if c == nil {
			return "no condition", false
		}
		return fmt.Sprintf("%+v: %s", *o.Spec.Progress, c.Message),
			o.Spec.Progress.Phase == phase && c.Message == message && c.Reason == string(phase)
	})
	return o
}

// paused waits until a remediation has the condition Paused.
func (w *fixture) paused(o *remediationv1.HookgateRemediation, status metav1.ConditionStatus, message string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s says Paused %s: %s", o.Name, status, message), func() (string, bool) {
		if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		c := meta.FindStatusCondition(o.Status.Conditions, clusterv1.PausedCondition)
		return fmt.Sprintf("%+v", c), c != nil && c.Status == status && c.Message == message
	})
}

// ownerRemediates reports whether the owner of a Machine is asked to remediate it.
func (w *fixture) ownerRemediates(name string) bool {
	c := meta.FindStatusCondition(w.get(name).Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return c != nil && c.Status == metav1.ConditionFalse
}

// TestRemediation remediates a Machine: it is held first, then RemediateMachine takes two calls with a restart of the
// controllers in between, and the Machine is left alone until it is healthy or the time is over.
func TestRemediation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var working atomic.Bool
	working.Store(true)
	w.says("BeforeMachineRemediation", waits("drains elsewhere"))
	w.says("RemediateMachine", func() (sdk.Answer, error) {
		if working.Load() {
			return sdk.Wait(1e9, "reboots"), nil
		}
		return sdk.Done(), nil
	})
	w.register("BeforeMachineRemediation", "RemediateMachine")
	w.start()
	o := w.unhealthy("m", remediationv1.HookgateRemediationSpec{Settings: map[string]string{"power": "soft"}})
	w.remediates("m", remediationv1.Pending, "before.acme: drains elsewhere")
	if n := w.called("RemediateMachine", "m"); n > 0 {
		t.Errorf("RemediateMachine was called %d times before it was let go", n)
	}
	w.says("BeforeMachineRemediation", nil)
	w.remediates("m", remediationv1.Remediating, "remediate.acme: reboots")
	w.event("m", "Remediating: remediate.acme: reboots") // which is written a while after the status
	w.stop()
	asked := w.called("BeforeMachineRemediation", "m")
	working.Store(false)
	w.start()
	w.remediates("m", remediationv1.Verifying, "the Machine was remediated, and has to become healthy")
	if n := w.called("BeforeMachineRemediation", "m"); n != asked {
		t.Errorf("BeforeMachineRemediation was called %d times again", n-asked)
	}
	for _, in := range w.remediations() {
		if in.GetRemediationId() != string(o.UID) || in.GetAttempt() != 1 || in.GetSettings()["power"] != "soft" {
			t.Errorf("a request has id %q, attempt %d, settings %v; the remediation has UID %s", in.GetRemediationId(),
				in.GetAttempt(), in.GetSettings(), o.UID)
		}
	}
	if w.ownerRemediates("m") {
		t.Error("the owner is asked to remediate a Machine that was remediated")
	}
}

// TestRemediationFails hands Machines over to their owners: when each attempt fails, when the Machine does not become
// healthy, and when nobody can remediate it. It does not while the Machine is healthy.
func TestRemediationFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.says("RemediateMachine", func() (sdk.Answer, error) { return nil, sdk.Failf("no power") })
	w.says("RemediateMachine slow", func() (sdk.Answer, error) { return sdk.Done(), nil })
	w.register("RemediateMachine")
	w.start()
	const end = "; the owner of the Machine has to remediate it"
	w.unhealthy("twice", remediationv1.HookgateRemediationSpec{RetryLimit: new(int32(1))})
	w.remediates("twice", remediationv1.OwnerRemediating, "attempt 2: no power"+end)
	w.unhealthy("slow", remediationv1.HookgateRemediationSpec{TimeoutSeconds: new(int32(2))})
	w.remediates("slow", remediationv1.OwnerRemediating, "attempt 1: the Machine is not healthy 2s after the attempt began"+end)
	w.unhealthy("nobody", remediationv1.HookgateRemediationSpec{Handler: "other.acme"})
	o := w.remediates("nobody", remediationv1.OwnerRemediating,
		`attempt 1: no handler "other.acme": the handlers of RemediateMachine are remediate.acme`+end)
	c := meta.FindStatusCondition(o.Status.Conditions, remediationv1.RemediatingCondition)
	if c.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v", c)
	}
	for _, name := range []string{"twice", "slow", "nobody"} {
		w.eventually("the owner of "+name+" is asked", func() (string, bool) { return "", w.ownerRemediates(name) })
	}
	// The MachineHealthCheck says that a Machine is unhealthy after it has made the remediation. It is not handed over
	// before that.
	late := w.machine("late", "held")
	o = &remediationv1.HookgateRemediation{Spec: remediationv1.HookgateRemediationSpec{Handler: "other.acme"}}
	o.Name = "late"
	o.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "late", UID: late.UID,
	}}
	w.create(o)
	w.remediates("late", remediationv1.OwnerRemediating,
		`attempt 1: no handler "other.acme": the handlers of RemediateMachine are remediate.acme`+end)
	if w.ownerRemediates("late") {
		t.Error("the owner of a healthy Machine is asked to remediate it")
	}
	w.status("late", func(s *clusterv1.MachineStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "UnhealthyNode",
		})
	})
	w.eventually("the owner of late is asked", func() (string, bool) { return "", w.ownerRemediates("late") })
	var attempts []string
	for _, in := range w.remediations() {
		if strings.Contains(string(in.GetMachine().GetRaw()), `"twice"`) {
			attempts = append(attempts, strconv.Itoa(int(in.GetAttempt())))
		}
	}
	if got := strings.Join(attempts, " "); got != "1 2" {
		t.Errorf("the attempts were %s, want 1 2", got)
	}
	w.event("twice", "OwnerRemediating: attempt 2: no power"+end)
}

// TestRemediationMoves takes a remediation to another namespace as clusterctl takes it to another management cluster, and
// as a backup brings it back: without its status, with other UIDs, and from a backup without its owner. It goes on with
// the attempt that it was at, under the same id.
func TestRemediationMoves(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.says("RemediateMachine", waits("reboots"))
	w.says("RemediateMachine fails", func() (sdk.Answer, error) { return nil, sdk.Failf("no power") })
	w.register("RemediateMachine")
	w.start()
	for _, name := range []string{"moved", "restored", "fails"} {
		w.unhealthy(name, remediationv1.HookgateRemediationSpec{RetryLimit: new(int32(1)), TimeoutSeconds: new(int32(3600))})
	}
	w.remediates("fails", remediationv1.OwnerRemediating, "attempt 2: no power; the owner of the Machine has to remediate it")
	before := map[string]*remediationv1.HookgateRemediation{}
	for name, phase := range map[string]remediationv1.Phase{
		"moved": remediationv1.Remediating, "restored": remediationv1.Remediating, "fails": remediationv1.OwnerRemediating,
	} {
		o := &remediationv1.HookgateRemediation{}
		w.eventually(name+" is "+string(phase), func() (string, bool) {
			if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%+v", o.Spec.Progress), o.Spec.Progress != nil && o.Spec.Progress.Phase == phase
		})
		before[name] = o
	}
	w.stop()
	n := len(w.remediations())

	there := newFixture(t)
	there.says("RemediateMachine", func() (sdk.Answer, error) { return sdk.Done(), nil })
	there.register("RemediateMachine")
	for name, o := range before {
		o = o.DeepCopy()
		made := there.unhealthy(name, o.Spec)
		if name == "restored" {
			made.OwnerReferences = nil
			if err := there.client.Update(t.Context(), made); err != nil {
				t.Fatal(err)
			}
		}
	}
	there.start()
	for _, name := range []string{"moved", "restored"} {
		o := there.remediates(name, remediationv1.Verifying, "the Machine was remediated, and has to become healthy")
		was, is := before[name].Spec.Progress, o.Spec.Progress
		if is.ID != was.ID || is.ID != string(before[name].UID) || is.Attempt != 1 || !is.AttemptStartTime.Equal(&was.AttemptStartTime) {
			t.Errorf("%s: got %+v, and it was %+v", name, is, was)
		}
		if len(o.OwnerReferences) != 1 || o.OwnerReferences[0].UID != there.get(name).UID {
			t.Errorf("%s: the Machine does not own it: %v", name, o.OwnerReferences)
		}
	}
	there.remediates("fails", remediationv1.OwnerRemediating, "the owner of the Machine has to remediate it")
	there.eventually("the owner is asked there, too", func() (string, bool) { return "", there.ownerRemediates("fails") })
	for _, in := range there.remediations() {
		if id := in.GetRemediationId(); id != string(before["moved"].UID) && id != string(before["restored"].UID) || in.GetAttempt() != 1 {
			t.Errorf("there, attempt %d of %s is called", in.GetAttempt(), id)
		}
	}
	if len(w.remediations()) != n {
		t.Error("the stopped controllers have called")
	}
}

// TestRemediationPauses calls nobody about a paused Machine, and ends with the remediation.
func TestRemediationPauses(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.says("RemediateMachine", waits("reboots"))
	w.register("RemediateMachine")
	patch(t, w, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}}, `{"spec":{"paused":true}}`)
	o := w.unhealthy("m", remediationv1.HookgateRemediationSpec{})
	w.start()
	w.paused(o, metav1.ConditionTrue, "spec.paused of the Cluster is true")
	other := newFixture(t) // works at the same time, and so the first does nothing for a while
	other.says("RemediateMachine", waits("reboots"))
	other.register("RemediateMachine")
	other.start()
	other.unhealthy("m", remediationv1.HookgateRemediationSpec{})
	other.eventually("it is asked again", func() (string, bool) {
		n := other.called("RemediateMachine", "m")
		return strconv.Itoa(n), n > 2
	})
	if n := w.called("RemediateMachine", "m"); n > 0 {
		t.Errorf("RemediateMachine was called %d times though the Cluster is paused", n)
	}
	patch(t, w, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}}, `{"spec":{"paused":false}}`)
	w.remediates("m", remediationv1.Remediating, "remediate.acme: reboots")
	w.paused(o, metav1.ConditionFalse, "")
	pause := `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`
	patch(t, w, o, pause)
	w.paused(o, metav1.ConditionTrue, "the object has the annotation cluster.x-k8s.io/paused")
	patch(t, w, w.get("m"), pause)
	w.paused(o, metav1.ConditionTrue, "the Machine has the annotation cluster.x-k8s.io/paused, and the object has the annotation "+
		"cluster.x-k8s.io/paused")
	if c := meta.FindStatusCondition(o.Status.Conditions, remediationv1.RemediatingCondition); c == nil || o.Spec.Progress.Attempt != 1 {
		t.Errorf("a paused remediation has lost its status: %+v", o.Status)
	}
	for _, paused := range []client.Object{o, w.get("m")} {
		patch(t, w, paused, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	}
	w.paused(o, metav1.ConditionFalse, "")
	if err := w.client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n := w.called("RemediateMachine", "m")
	before := other.called("RemediateMachine", "m")
	other.eventually("the other is asked three times more", func() (string, bool) {
		now := other.called("RemediateMachine", "m")
		return strconv.Itoa(now), now > before+2
	})
	if again := w.called("RemediateMachine", "m"); again > n+1 { // one may have been under way
		t.Errorf("RemediateMachine was called %d times after the remediation had been deleted", again-n)
	}
}

// remediations returns the requests of RemediateMachine so far.
func (w *fixture) remediations() []*machinesv1alpha1.RemediateMachineRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remediated
}
