// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// TestPlanInstances has the words of TestPlan, - for an instance that is gone outside, and ? for one that the last answer
// lacks. A wanted number below zero means that something else decides.
func TestPlanInstances(t *testing.T) {
	for _, c := range []struct {
		reason, members string
		wanted          int32
		want            string
	}{
		{"leaves alone what is as it should be", "n+ n+", 2, ""},
		{"removes what is gone, and lacks it", "n+ n-", 2, "create 1 remove 1"},
		{"removes what is gone before all else", "n+ n+ n-", 1, "remove 2 0"},
		{"leaves what is gone and being deleted", "n+ n-x", 1, ""},
		{"removes none for one that the backend has replaced", "n+? n+ n+", 2, ""},
		{"lacks one that is not replaced yet", "n+? n+", 2, "create 1"},
		{"removes what was not listed once it is gone", "n-? n+ n+", 2, "remove 0"},
		{"removes nothing if something else decides", "n+ n+ n", -1, ""},
		{"but what is gone", "n+ n-", -1, "remove 1"},
		{"and one of an old revision", "o+ o+ n+", -1, "remove 0"},
		{"while all of the new one are ready", "o+ o+ n", -1, ""},
		{"one at a time", "o+! o+ n+", -1, "remove 0"},
	} {
		var members []member
		for i, word := range strings.Fields(c.members) {
			members = append(members, member{
				name: strconv.Itoa(i), revision: word[:1], ready: strings.Contains(word, "+"), gone: strings.Contains(word, "-"),
				absent: strings.Contains(word, "?"), preferred: strings.Contains(word, "!"), deleting: strings.Contains(word, "x"), created: time.Unix(int64(i), 0),
			})
		}
		var wanted *int32
		if c.wanted >= 0 {
			wanted = &c.wanted
		}
		todo := planInstances(members, "n", wanted)
		var got []string
		if todo.create > 0 {
			got = append(got, fmt.Sprintf("create %d", todo.create))
		}
		if len(todo.remove) > 0 {
			got = append(got, "remove "+strings.Join(todo.remove, " "))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q: %q, want %q", c.reason, c.members, text, c.want)
		}
	}
}

// The same instance has the same HookgateMachine, whose name two pools never share.
func TestInstanceMachinesHaveNamesOfTheirOwn(t *testing.T) {
	w := &scope{machinePool: &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, clusterName: "c"}
	p := &infrav1.HookgateMachinePool{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("p", 253), Namespace: "n"}}
	p.Spec.ExternalID = "one"
	other := p.DeepCopy()
	other.Spec.ExternalID = "two"
	i := &infrahooksv1alpha1.Instance{Name: "i", ProviderId: "fake://i"}
	name := newInstanceMachine(p, w, i, "r").Name
	if again := newInstanceMachine(p, w, i, "s").Name; again != name || len(name) > 253 {
		t.Errorf("the names are %q and %q", name, again)
	}
	if foreign := newInstanceMachine(other, w, i, "r").Name; foreign == name {
		t.Errorf("an instance of another pool has the name %q, too", foreign)
	}
	if second := newInstanceMachine(p, w, &infrahooksv1alpha1.Instance{Name: "j"}, "r").Name; second == name {
		t.Errorf("another instance has the name %q, too", second)
	}
}

// What an instance was once is kept: its provider ID, that it was provisioned, and its addresses.
func TestDecideInstanceKeepsWhatIsKnown(t *testing.T) {
	m := &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{infrav1.InstanceAnnotation: "i"},
	}}
	m.Spec.ProviderID = "fake://i"
	decideInstance(m, &infrahooksv1alpha1.Instance{
		Name: "i", ProviderId: "fake://i", Phase: infrahooksv1alpha1.Phase_PHASE_READY, FailureDomain: "a", Revision: "r",
		Addresses: []*infrahooksv1alpha1.MachineAddress{{Type: "InternalIP", Address: "10.0.0.1"}},
	})
	if !isReady(m) || m.Annotations[infrav1.RevisionAnnotation] != "r" || m.Status.FailureDomain != "a" {
		t.Errorf("a ready instance is %v %v", m.Annotations, m.Status)
	}
	decideInstance(m, &infrahooksv1alpha1.Instance{Name: "i", Phase: infrahooksv1alpha1.Phase_PHASE_FAILED, Reason: "InstanceGone"})
	if saysReady(m) || !instanceGone(m) || !provisioned(m.Status.Initialization) || m.Spec.ProviderID != "fake://i" ||
		len(m.Status.Addresses) != 1 || m.Status.FailureDomain != "a" || m.Annotations[infrav1.RevisionAnnotation] != "r" {
		t.Errorf("an instance that has failed is %v %v", m.Spec, m.Status)
	}
}
