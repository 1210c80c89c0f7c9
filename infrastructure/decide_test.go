// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The first endpoint is taken, from whoever sets it first. Another one later is a conflict.
func TestDecideEndpoint(t *testing.T) {
	a, b := clusterv1.APIEndpoint{Host: "a", Port: 1}, clusterv1.APIEndpoint{Host: "b", Port: 1}
	none := clusterv1.APIEndpoint{}
	for _, c := range []struct {
		reason                         string
		stored, ofCluster, answer, use clusterv1.APIEndpoint
		conflict                       bool
	}{
		{"the first answer", none, none, a, a, false},
		{"no answer", none, none, none, none, false},
		{"the same again", a, none, a, a, false},
		{"another one", a, none, b, a, true},
		{"another port", a, none, clusterv1.APIEndpoint{Host: "a", Port: 2}, a, true},
		{"none after one", a, none, none, a, false},
		{"the user's, honoured", none, a, a, a, false},
		{"the user's, ignored", none, a, b, none, true},
		{"an invalid one of the Cluster", none, clusterv1.APIEndpoint{Host: "a"}, b, b, false},
	} {
		o, answer := &infrav1.HookgateCluster{}, &infrahooksv1alpha1.ReconcileClusterResponse{
			Phase: infrahooksv1alpha1.Phase_PHASE_READY,
		}
		o.Spec.ControlPlaneEndpoint = c.stored
		if c.answer != none {
			answer.ControlPlaneEndpoint = &infrahooksv1alpha1.Endpoint{Host: c.answer.Host, Port: c.answer.Port}
		}
		decideCluster(o, c.ofCluster, answer)
		if d := cmp.Diff(c.use, o.Spec.ControlPlaneEndpoint); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
		synced := meta.FindStatusCondition(o.Status.Conditions, infrav1.SyncedCondition)
		if got := synced.Reason == infrav1.EndpointConflictReason; got != c.conflict {
			t.Errorf("%s: Synced is %v", c.reason, synced)
		}
	}
}

// An answer about a cluster that is not ready leaves what it does not have.
func TestDecideClusterKeepsWhatIsKnown(t *testing.T) {
	c := &infrav1.HookgateCluster{}
	decideCluster(c, clusterv1.APIEndpoint{}, &infrahooksv1alpha1.ReconcileClusterResponse{
		Phase: infrahooksv1alpha1.Phase_PHASE_READY, FailureDomains: []*infrahooksv1alpha1.FailureDomain{{Name: "a"}},
		Outputs: &hooksv1alpha1.JSON{Raw: []byte(`{"network":"n"}`)},
	})
	before := c.DeepCopy()
	decideCluster(c, clusterv1.APIEndpoint{}, &infrahooksv1alpha1.ReconcileClusterResponse{
		Phase: infrahooksv1alpha1.Phase_PHASE_PROVISIONING,
	})
	c.Status.Conditions = before.Status.Conditions
	if d := cmp.Diff(before, c); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	decideCluster(c, clusterv1.APIEndpoint{}, &infrahooksv1alpha1.ReconcileClusterResponse{
		Phase: infrahooksv1alpha1.Phase_PHASE_READY,
	})
	if c.Status.FailureDomains != nil || c.Status.Outputs != nil {
		t.Errorf("what a ready cluster does not have any more is kept: %+v", c.Status)
	}
}

// What an answer says of a machine, and what it leaves.
func TestDecideMachine(t *testing.T) {
	m := &infrav1.HookgateMachine{}
	answer := func(phase infrahooksv1alpha1.Phase, reason, id string) *infrahooksv1alpha1.ReconcileMachineResponse {
		return &infrahooksv1alpha1.ReconcileMachineResponse{Phase: phase, Reason: reason, ProviderId: id}
	}
	for _, c := range []struct {
		reason      string
		answer      *infrahooksv1alpha1.ReconcileMachineResponse
		wait        time.Duration
		ready       string
		provisioned bool
	}{
		{"work under way", answer(infrahooksv1alpha1.Phase_PHASE_PROVISIONING, "", ""), provisioningInterval, "Provisioning", false},
		{"an id before it is ready", answer(infrahooksv1alpha1.Phase_PHASE_PROVISIONING, "Booting", "x://1"), provisioningInterval, "Booting", false},
		{"a quota", answer(infrahooksv1alpha1.Phase_PHASE_FAILED, "QuotaExceeded", ""), provisioningInterval, "QuotaExceeded", false},
		{"ready", answer(infrahooksv1alpha1.Phase_PHASE_READY, "", "x://1"), readyInterval, "Ready", true},
		{"another id", answer(infrahooksv1alpha1.Phase_PHASE_READY, "", "x://2"), 0, "Ready", true},
		{"a reboot", answer(infrahooksv1alpha1.Phase_PHASE_PROVISIONING, "", "x://1"), provisioningInterval, "Provisioning", true},
		{"gone", answer(infrahooksv1alpha1.Phase_PHASE_FAILED, "InstanceGone", ""), poolInterval, "InstanceGone", true},
	} {
		wait := decideMachine(m, c.answer)
		ready := meta.FindStatusCondition(m.Status.Conditions, infrav1.ReadyCondition)
		if wait != c.wait || ready.Reason != c.ready || provisioned(m.Status.Initialization) != c.provisioned ||
			strings.HasSuffix(m.Spec.ProviderID, "2") {
			t.Errorf("%s: wait %s, Ready %s, provisioned %t, provider ID %q", c.reason, wait, ready.Reason,
				provisioned(m.Status.Initialization), m.Spec.ProviderID)
		}
	}
}

// Conditions of the extension come and go with its answers, after those of the controllers, in one order.
func TestConditionsOfTheExtension(t *testing.T) {
	m := &infrav1.HookgateMachine{}
	with := func(kinds ...string) *infrahooksv1alpha1.ReconcileMachineResponse {
		r := &infrahooksv1alpha1.ReconcileMachineResponse{Phase: infrahooksv1alpha1.Phase_PHASE_PROVISIONING}
		for _, k := range kinds {
			r.Conditions = append(r.Conditions, &infrahooksv1alpha1.Condition{Type: k, Status: "True", Reason: "R"})
		}
		return r
	}
	for _, c := range []struct {
		answer *infrahooksv1alpha1.ReconcileMachineResponse
		want   string
	}{
		{with("Zone", "Disk"), "Ready Synced Disk Zone"}, {with("Disk", "Zone"), "Ready Synced Disk Zone"},
		{with("Zone"), "Ready Synced Zone"}, {with(), "Ready Synced"},
	} {
		decideMachine(m, c.answer)
		var got []string
		for _, x := range m.Status.Conditions {
			got = append(got, x.Type)
		}
		if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// A class needs four handlers, names one where there are several, and takes none whose errors could be hidden.
func TestChooseHandlers(t *testing.T) {
	handler := func(name, hook string) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{
			Name:        name,
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "infrastructure.hookgate.dev/v1alpha1", Hook: hook},
		}
	}
	four := []*hooksv1alpha1.ExtensionHandler{
		handler("rc", "ReconcileCluster"), handler("dc", "DeleteCluster"), handler("rm", "ReconcileMachine"),
		handler("dm", "DeleteMachine"),
	}
	ignoring := handler("rm", "ReconcileMachine")
	ignoring.FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
	for _, c := range []struct {
		reason   string
		named    infrav1.Handlers
		handlers []*hooksv1alpha1.ExtensionHandler
		problem  string
	}{
		{"four functions are enough", infrav1.Handlers{}, four, ""},
		{"three are not", infrav1.Handlers{}, four[:3], "no handler for DeleteMachine"},
		{"two for a hook", infrav1.Handlers{}, append([]*hooksv1alpha1.ExtensionHandler{handler("x", "DeleteCluster")}, four...), "name one in spec.handlers.deleteCluster"},
		{"one of two named", infrav1.Handlers{DeleteCluster: "x"}, append([]*hooksv1alpha1.ExtensionHandler{handler("x", "DeleteCluster")}, four...), ""},
		{"a name that is not there", infrav1.Handlers{DeleteCluster: "y"}, four, `no handler "y" for DeleteCluster`},
		{"failure policy Ignore", infrav1.Handlers{}, append([]*hooksv1alpha1.ExtensionHandler{ignoring}, four[:2]...), "must not be Ignore"},
		{"half of the hooks for pools", infrav1.Handlers{}, append([]*hooksv1alpha1.ExtensionHandler{handler("p", "ReconcileMachinePool")}, four...), "both hooks of machine pools"},
	} {
		_, problems := chooseHandlers(c.named, c.handlers)
		if got := strings.Join(problems, "; "); !strings.Contains(got, c.problem) || c.problem == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.reason, got, c.problem)
		}
	}
}

// A call is due when its inputs change, or its time has come; failures put it off, more and more.
func TestScheduler(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newScheduler(func() time.Time { return now })
	key, in, other := types.NamespacedName{Name: "o"}, inputs{1}, inputs{2}
	if d := p.wait(key, in); d != 0 {
		t.Errorf("the first call waits %s", d)
	}
	p.answered(key, in, time.Minute)
	if d := p.wait(key, in); d != time.Minute {
		t.Errorf("after an answer it waits %s", d)
	}
	if d := p.wait(key, other); d != 0 {
		t.Errorf("with other inputs it waits %s", d)
	}
	now = now.Add(time.Minute)
	if d := p.wait(key, in); d != 0 {
		t.Errorf("when its time has come it waits %s", d)
	}
	var last time.Duration
	for range 10 {
		last = p.failed(key, in, 0)
	}
	if last < limits.LongestRetry/2 || last > limits.LongestRetry*3/2 {
		t.Errorf("after ten failures it waits %s", last)
	}
	if d := p.failed(key, other, 0); d > 2*limits.LeastRetry {
		t.Errorf("a failure with other inputs waits %s", d)
	}
	if d := p.failed(key, other, time.Hour); d < 50*time.Minute {
		t.Errorf("a failure that asks for an hour waits %s", d)
	}
	p.forget(key)
	if d := p.wait(key, other); d != 0 {
		t.Errorf("after it was forgotten it waits %s", d)
	}
}

// Ids are DNS-1123 labels for every name of an object, and differ.
func TestNewExternalID(t *testing.T) {
	for _, name := range []string{"a", "a.b", strings.Repeat("x", 253), "-", "a" + strings.Repeat("-", 40), ""} {
		id := newExternalID(name)
		if problems := validation.IsDNS1123Label(id); len(problems) > 0 || id == newExternalID(name) {
			t.Errorf("%q: %q %v", name, id, problems)
		}
	}
}
