// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// called returns how handlers are called: by registered name, the policy, the timeout and the failure policy.
func called(r *Registry) map[string]string {
	m := map[string]string{}
	for _, e := range r.Snapshot().All() {
		by := "-"
		if e.Policy != nil {
			by = e.Policy.Name
		}
		m[e.Name] = by + " " + e.Handler.Timeout.String() + " " + string(e.Handler.FailurePolicy)
	}
	return m
}

func TestPoliciesTakeThePlaceOfTheHandlersSettings(t *testing.T) {
	all := &policy.Policy{Name: "all", Timeout: 3 * time.Second}
	own := &policy.Policy{Name: "own", FailurePolicy: hook.Ignore}
	tests := map[string]struct {
		reason   string
		policies Policies
		want     map[string]string
	}{
		"None": {
			"without policies all is as discovery has it", Policies{},
			map[string]string{"a.x": "- 10s Fail", "b.x": "- 10s Fail"},
		},
		"All": {
			"a policy for the ExtensionConfig is for all its handlers", Policies{All: all},
			map[string]string{"a.x": "all 3s Fail", "b.x": "all 3s Fail"},
		},
		"Own": {
			"what a policy for the handler leaves out is as the one for all says",
			Policies{All: all, Handlers: map[string]*policy.Policy{"b": own}}, map[string]string{
				"a.x": "all 3s Fail", "b.x": "own 3s Ignore",
			},
		},
		"OwnAlone": {
			"others are left alone", Policies{Handlers: map[string]*policy.Policy{"b": own}},
			map[string]string{"a.x": "- 10s Fail", "b.x": "own 10s Ignore"},
		},
		"Missing": {
			"an absent handler affects no other", Policies{Handlers: map[string]*policy.Policy{"c": own}},
			map[string]string{"a.x": "- 10s Fail", "b.x": "- 10s Fail"},
		},
		"TooLong": {
			"no call takes more than 30 s", Policies{All: &policy.Policy{Name: "long", Timeout: time.Hour}},
			map[string]string{"a.x": "long 30s Fail", "b.x": "long 30s Fail"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, early := New(), New()
			mustApply(t, r, registration("x", "a", "b"))
			before := r.Snapshot()
			r.SetPolicies("x", tc.policies)
			if diff := cmp.Diff(tc.want, called(r)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			early.SetPolicies("x", tc.policies)
			mustApply(t, early, registration("x", "a", "b"))
			if diff := cmp.Diff(tc.want, called(early)); diff != "" {
				t.Errorf("%s, also for one that comes later: -want +got:\n%s", tc.reason, diff)
			}
			for _, h := range r.Snapshot().Registrations()[0].Handlers {
				if h.Timeout != 10*time.Second || h.FailurePolicy != hook.Fail {
					t.Errorf("the registration keeps what discovery said, got %v", h)
				}
			}
			for _, e := range before.All() {
				if e.Policy != nil {
					t.Error("a snapshot never changes")
				}
			}
			r.SetPolicies("x", Policies{})
			if diff := cmp.Diff(tests["None"].want, called(r)); diff != "" {
				t.Errorf("without policies all is as it was: -want +got:\n%s", diff)
			}
		})
	}
}

func TestPoliciesSayWhichObjectsHandlersUnderstand(t *testing.T) {
	r := New()
	stated := registration("x", "a", "b")
	stated.Handlers[1].ClusterAPIVersion = hook.ClusterAPIV1Beta2
	mustApply(t, r, stated)
	versions := func() map[string]string {
		m := map[string]string{}
		for _, e := range r.Snapshot().All() {
			m[e.Name] = e.Handler.ClusterAPIVersion
		}
		return m
	}
	before := map[string]string{"a.x": "", "b.x": "v1beta2"}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("what an extension states holds: -want +got:\n%s", diff)
	}
	r.SetPolicies("x", Policies{All: &policy.Policy{Name: "p", ClusterAPIVersion: hook.ClusterAPIV1Beta1}})
	if diff := cmp.Diff(map[string]string{"a.x": "v1beta1", "b.x": "v1beta1"}, versions()); diff != "" {
		t.Errorf("unless the operator says otherwise: -want +got:\n%s", diff)
	}
	r.SetPolicies("x", Policies{All: &policy.Policy{Name: "p", Timeout: time.Second}})
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("a policy that does not say leaves it: -want +got:\n%s", diff)
	}
}

func TestPoliciesStayWhenARegistrationIsReplaced(t *testing.T) {
	r := New()
	r.SetPolicies("x", Policies{All: &policy.Policy{Name: "p", Timeout: time.Second}})
	mustApply(t, r, registration("x", "a"), registration("y", "a"), registration("x", "b"))
	want := map[string]string{"b.x": "p 1s Fail", "a.y": "- 10s Fail"}
	if diff := cmp.Diff(want, called(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Remove("x")
	mustApply(t, r, registration("x", "b"))
	if diff := cmp.Diff(want, called(r)); diff != "" {
		t.Errorf("and when it comes back: -want +got:\n%s", diff)
	}
	bad := registration("x", "UPPER")
	if err := r.Apply(bad); err == nil {
		t.Fatal("a bad registration must be refused")
	}
	if diff := cmp.Diff(want, called(r)); diff != "" {
		t.Errorf("and when another is refused: -want +got:\n%s", diff)
	}
}

func TestSamePoliciesChangeNothing(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a--b", "c"))
	p := &policy.Policy{Name: "p", Timeout: time.Second}
	r.SetPolicies("x", Policies{Handlers: map[string]*policy.Policy{"c": p}})
	before := r.Snapshot()
	r.SetPolicies("x", Policies{Handlers: map[string]*policy.Policy{"c": p}})
	r.SetPolicies("unknown", Policies{})
	if r.Snapshot() != before {
		t.Error("the same policies made another snapshot")
	}
	r.SetPolicies("unknown", Policies{All: p})
	if got := r.Snapshot(); got.Generation() != before.Generation() {
		t.Error("policies without a target made a new generation")
	}
	// Labels with a hash lead to the entry that is in effect.
	r.SetPolicies("x", Policies{All: p})
	if e, ok := r.Snapshot().Handler(Label("a--b.x")); !ok || e.Policy != p || e.Handler.Timeout != time.Second {
		t.Errorf("got %v, %v", e, ok)
	}
}

// Whatever comes and goes in between, without policies the registry is as if there had never been any.
func TestWithoutPoliciesNothingIsDifferent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		with, without := New(), New()
		for range 20 {
			x := "x" + strconv.Itoa(random.IntN(3))
			switch random.IntN(4) {
			case 0:
				with.Remove(x)
				without.Remove(x)
			case 1:
				with.SetPolicies(x, Policies{
					All:      &policy.Policy{Name: "p", Timeout: time.Duration(random.IntN(30)) * time.Second},
					Handlers: map[string]*policy.Policy{"a": {Name: "q", FailurePolicy: hook.Ignore}},
				})
			default:
				reg := registration(x, []string{"a", "b", "c--d"}[random.IntN(3)], "e")
				mustApply(t, with, reg)
				mustApply(t, without, reg)
			}
		}
		for i := range 3 {
			with.SetPolicies("x"+strconv.Itoa(i), Policies{})
		}
		a, b := with.Snapshot(), without.Snapshot()
		if diff := cmp.Diff(b.All(), a.All()); diff != "" {
			t.Fatalf("round %d: -without +with:\n%s", round, diff)
		}
		gh := gvh("BeforeClusterCreate").GroupHook()
		if diff := cmp.Diff(b.Handlers(gh), a.Handlers(gh)); diff != "" {
			t.Fatalf("round %d: -without +with:\n%s", round, diff)
		}
		if len(a.policies) != 0 {
			t.Fatalf("round %d: %d policies are left behind", round, len(a.policies))
		}
	}
}

func TestSetAllPoliciesIsVisibleAtOnce(t *testing.T) {
	r := New()
	for _, name := range []string{"x", "y", "z"} {
		mustApply(t, r, registration(name, "a"))
	}
	p := &policy.Policy{Name: "p", Timeout: time.Second}
	r.SetPolicies("z", Policies{All: p})
	before := r.Snapshot()
	all := map[string]Policies{"x": {All: p}, "y": {}, "z": {}, "later": {All: p}}
	r.SetAllPolicies(all)
	after := r.Snapshot()
	if after.Generation() != before.Generation()+1 {
		t.Errorf("generation %d follows %d", after.Generation(), before.Generation())
	}
	want := map[string]string{"a.x": "p 1s Fail", "a.y": "- 10s Fail", "a.z": "- 10s Fail"}
	if diff := cmp.Diff(want, called(r)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if r.SetAllPolicies(all); r.Snapshot() != after {
		t.Error("the same policies changed the snapshot")
	}
	r.SetAllPolicies(map[string]Policies{"later": {All: p, Handlers: map[string]*policy.Policy{"b": p}}})
	if got := r.Snapshot().Generation(); got != after.Generation() {
		t.Errorf("policies without handlers made generation %d of %d", got, after.Generation())
	}
	mustApply(t, r, registration("later", "a"))
	want["a.later"] = "p 1s Fail"
	if diff := cmp.Diff(want, called(r)); diff != "" {
		t.Errorf("with a handler that comes later: -want +got\n%s", diff)
	}
}
