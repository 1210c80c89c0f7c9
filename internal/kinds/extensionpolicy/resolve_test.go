// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

func policyFor(name, config, handler string, created time.Time) Policy {
	return Policy{
		Name: name, Target: Target{ExtensionConfig: config, Handler: handler}, Created: created, Compiled: &policy.Policy{Name: name},
	}
}

func TestResolve(t *testing.T) {
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	present := func(Target) error { return nil }
	type names struct {
		All      string
		Handlers map[string]string
	}
	tests := map[string]struct {
		reason   string
		policies []Policy
		missing  func(Target) error
		want     map[string]names
		verdicts map[string]kinds.Verdict
	}{
		"Both": {
			"a handler's own policy and its ExtensionConfig's do not conflict",
			[]Policy{policyFor("all", "acme", "", early), policyFor("own", "acme", "v", late)}, present,
			map[string]names{"acme": {"all", map[string]string{"v": "own"}}},
			map[string]kinds.Verdict{"all": {Reason: "Accepted", Message: `In effect for ExtensionConfig "acme"`}, "own": {Reason: "Accepted", Message: `In effect for handler "v" of ExtensionConfig "acme"`}},
		},
		"Older": {
			"of two for one target the older is in effect, whatever its name",
			[]Policy{policyFor("a", "acme", "v", late), policyFor("b", "acme", "v", early)}, present,
			map[string]names{"acme": {"", map[string]string{"v": "b"}}},
			map[string]kinds.Verdict{
				"b": {Reason: "Accepted", Message: `In effect for handler "v" of ExtensionConfig "acme"`},
				"a": {Reason: "Conflicted", Message: `ExtensionPolicy "b", which is older, is also for handler "v" of ExtensionConfig "acme": delete one of the two policies, or change a targetRef`},
			},
		},
		"SameAge": {
			"of two of one age the first by name is in effect",
			[]Policy{policyFor("c", "acme", "", early), policyFor("b", "acme", "", early), policyFor("a", "other", "", late)}, present,
			map[string]names{"acme": {"b", nil}, "other": {"a", nil}},
			map[string]kinds.Verdict{
				"a": {Reason: "Accepted", Message: `In effect for ExtensionConfig "other"`}, "b": {Reason: "Accepted", Message: `In effect for ExtensionConfig "acme"`},
				"c": {Reason: "Conflicted", Message: `ExtensionPolicy "b", which comes first by name, is also for ExtensionConfig "acme": delete one of the two policies, or change a targetRef`},
			},
		},
		"Missing": {
			"a policy whose target is missing is ready for it; who is in conflict with it stays so",
			[]Policy{policyFor("a", "acme", "v", early), policyFor("b", "acme", "v", early)},
			func(Target) error { return errors.New(`there is no ExtensionConfig "acme"`) },
			map[string]names{"acme": {"", map[string]string{"v": "a"}}},
			map[string]kinds.Verdict{
				"a": {Reason: "TargetNotFound", Message: `there is no ExtensionConfig "acme"; the policy takes effect as soon as its target appears`},
				"b": {Reason: "Conflicted", Message: `ExtensionPolicy "a", which comes first by name, is also for handler "v" of ExtensionConfig "acme": delete one of the two policies, or change a targetRef`},
			},
		},
		"Nothing": {"no policies, no result", nil, present, map[string]names{}, map[string]kinds.Verdict{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				rand.Shuffle(len(tc.policies), func(i, j int) { tc.policies[i], tc.policies[j] = tc.policies[j], tc.policies[i] })
				resolved, verdicts := Resolve(tc.policies, tc.missing)
				got := map[string]names{}
				for config, p := range resolved {
					got[config] = named(p)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.verdicts, verdicts); diff != "" {
					t.Fatalf("%s: verdicts -want +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// named returns the names of policies.
func named(p registry.Policies) (n struct {
	All      string
	Handlers map[string]string
}) {
	if p.All != nil {
		n.All = p.All.Name
	}
	for handler, own := range p.Handlers {
		if n.Handlers == nil {
			n.Handlers = map[string]string{}
		}
		n.Handlers[handler] = own.Name
	}
	return n
}

func TestVerdictAsCondition(t *testing.T) {
	for reason, status := range map[string]metav1.ConditionStatus{
		v1alpha1.AcceptedReason: metav1.ConditionTrue, v1alpha1.ConflictedReason: metav1.ConditionFalse,
		v1alpha1.TargetNotFoundReason: metav1.ConditionFalse, v1alpha1.InvalidReason: metav1.ConditionFalse,
	} {
		want := metav1.Condition{Type: "Accepted", Status: status, ObservedGeneration: 3, Reason: reason, Message: "why"}
		if diff := cmp.Diff(want, kinds.Verdict{Reason: reason, Message: "why"}.AcceptedCondition(3)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
	}
}
