// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// answers is an Answerer of a kind.
type answers struct{ kind string }

func (a *answers) Kind() string { return a.kind }

func (*answers) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, errors.New("nothing is called here")
}

// local returns a registration of a kind, with the handler rule or job.
func local(kind, name string) Registration {
	handler := map[string]string{"HookRule": "rule", "HookJob": "job"}[kind]
	return Registration{
		Name: name, InProcess: &answers{kind},
		Handlers: []Handler{{Name: handler, Hook: gvh("BeforeClusterUpgrade"), Timeout: time.Second, FailurePolicy: hook.Fail}},
	}
}

// serves returns what is registered, in order.
func serves(r *Registry) (all []string) {
	for _, reg := range r.Snapshot().Registrations() {
		all = append(all, reg.Describe())
	}
	return all
}

func expectServed(t *testing.T, r *Registry, when string, want ...string) {
	t.Helper()
	if got := serves(r); !slices.Equal(got, want) {
		t.Errorf("%s: served are %q, want %q", when, got, want)
	}
}

// What has no server precedes ExtensionConfigs and Rollouts of its name, registered or not, whichever comes first: whoever
// may only register an extension cannot turn off a rule.
func TestLocalPrecedesOthers(t *testing.T) {
	r := New()
	mustApply(t, r, registration("a", "v"))
	r.SetLocal("HookRule", []Registration{local("HookRule", "a"), local("HookRule", "b")})
	expectServed(t, r, "after an ExtensionConfig", `HookRule "a"`, `HookRule "b"`)
	mustApply(t, r, registration("b", "v"), registration("a", "w"))
	expectServed(t, r, "before an ExtensionConfig", `HookRule "a"`, `HookRule "b"`)
	if got := r.Snapshot().Shadowed(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("not called are %q", got)
	}
	if e, ok := r.Snapshot().Handler("RULE--A"); !ok || e.Name != "rule.a" {
		t.Errorf("by its label, the handler is %+v", e)
	}
	if e, ok := r.Snapshot().Handler("w.a"); ok {
		t.Errorf("an ExtensionConfig that is not called has the handler %s", e.Name)
	}
	r.SetLocal("HookRule", []Registration{local("HookRule", "b")})
	expectServed(t, r, "without one rule", `ExtensionConfig "a"`, `HookRule "b"`)
	if _, ok := r.Snapshot().Handler("w.a"); !ok {
		t.Error("the ExtensionConfig is not called as it was applied last")
	}
	r.SetUndiscovered([]Undiscovered{{Name: "b", Default: hook.Fail}})
	r.SetLocal("HookRule", nil)
	expectServed(t, r, "without rules", `ExtensionConfig "a"`, `ExtensionConfig "b"`)
	if got := awaited(r.Snapshot()); len(got) > 0 {
		t.Errorf("calls wait for %q, which is registered", got)
	}
	r.RemoveAll([]string{"a", "b"})
	expectServed(t, r, "without all")

	r.SetUndiscovered([]Undiscovered{{Name: "b", Default: hook.Fail}})
	r.SetLocal("HookRule", []Registration{local("HookRule", "b")})
	expectServed(t, r, "beside one that is not known", `HookRule "b"`)
	if got := awaited(r.Snapshot()); len(got) > 0 {
		t.Errorf("calls wait for %q", got)
	}
	r.SetPolicies("b", Policies{All: &policy.Policy{Timeout: 3 * time.Second}})
	r.SetLocal("HookRule", nil)
	if got := awaited(r.Snapshot()); len(got) != 1 {
		t.Errorf("without the rule, calls wait for %q", got)
	}
	r.RemoveAll([]string{"b"})

	r.SetLocal("HookRule", []Registration{local("HookRule", "roll"), local("HookRule", "v1")})
	r.SetRollouts([]Rollout{{Name: "roll", Stable: "v2"}, {Name: "other", Stable: "v1"}})
	expectServed(t, r, "beside Rollouts", `HookRule "roll"`, `HookRule "v1"`)
	for _, name := range []string{"rule.roll", "rule.v1"} {
		if _, ok := r.Snapshot().Handler(name); !ok {
			t.Errorf("%s is not served", name)
		}
	}
	if of, ok := r.Snapshot().MemberOf("v2"); ok {
		t.Errorf("a Rollout that is refused has the member v2: %s", of)
	}
	r.SetLocal("HookRule", nil)
	if _, ok := r.Snapshot().MemberOf("v2"); !ok {
		t.Error("without the rule, the Rollout has no member")
	}
}

// Of two kinds without servers with one name, the HookRule is served.
func TestLocalsOfTwoKinds(t *testing.T) {
	r := New()
	r.SetLocal("HookRule", []Registration{local("HookRule", "a"), local("HookRule", "b")})
	r.SetLocal("HookJob", []Registration{local("HookJob", "b"), local("HookJob", "c")})
	expectServed(t, r, "both", `HookRule "a"`, `HookRule "b"`, `HookJob "c"`)
	s := r.Snapshot()
	for kind, want := range map[string]string{"HookRule": "", "HookJob": `the name of HookRule "b"`} {
		if got := s.TakenLocal(kind, "b"); got != want {
			t.Errorf("to a %s, the name is %q, want %q", kind, got, want)
		}
	}
	if got := s.TakenNameOfLocal("HookRule", "c", "rule"); got != `the name of HookJob "c"` {
		t.Errorf("to a new HookRule, the name is %q", got)
	}
	if got := s.TakenName("b"); got != `the name of HookRule "b"` {
		t.Errorf("to a new chain, the name is %q", got)
	}
	if got := s.TakenByLocal("c"); got != `the name of HookJob "c"` {
		t.Errorf("to a new ExtensionConfig, the name is %q", got)
	}
	r.SetLocal("HookRule", []Registration{local("HookRule", "a")})
	expectServed(t, r, "one", `HookRule "a"`, `HookJob "b"`, `HookJob "c"`)
}

// A registration with the Answerer that it had keeps its pointer, so that nothing changes; one that is wrong is refused
// alone.
func TestSetLocalKeepsWhatIsTheSame(t *testing.T) {
	r := New()
	a, wrong := local("HookRule", "a"), local("HookRule", "b")
	wrong.Handlers[0].Timeout = 0
	errs := r.SetLocal("HookRule", []Registration{a, wrong})
	if errs[0] != nil || errs[1] == nil || errs[1].Error() != `HookRule "b": handlers[0].timeout: 0s is not more than 0s and at most 30s` {
		t.Errorf("errors are %v", errs)
	}
	expectServed(t, r, "beside a wrong one", `HookRule "a"`)
	before := r.Snapshot()
	if r.SetLocal("HookRule", []Registration{a}); r.Snapshot() != before {
		t.Error("to set the same again is a change")
	}
	r.SetLocal("HookRule", []Registration{local("HookRule", "a")})
	if now := r.Snapshot(); now.Generation() == before.Generation() || now.Registrations()[0] == before.Registrations()[0] {
		t.Error("another Answerer is no change")
	}
}

// A label has a hash if it would be longer than 63 characters, and goes with its rule.
func TestLabelsOfLocals(t *testing.T) {
	r := New()
	long, longest := strings.Repeat("x", 57), strings.Repeat("y", 58)
	r.SetLocal("HookRule", []Registration{local("HookRule", long), local("HookRule", longest)})
	for name, hashed := range map[string]bool{long: false, longest: true} {
		label := Label("rule." + name)
		if e, ok := r.Snapshot().Handler(label); !ok || e.Name != "rule."+name || len(label) != 63 || strings.HasSuffix(label, name) == hashed {
			t.Errorf("%s is of %+v", label, e)
		}
	}
	r.SetLocal("HookRule", nil)
	if e, ok := r.Snapshot().Handler(Label("rule." + longest)); ok {
		t.Errorf("the label of a rule that is gone is of %s", e.Name)
	}
}

// The policies of a name are those of what is served under it.
func TestPoliciesOfLocals(t *testing.T) {
	r := New()
	r.SetPolicies("a", Policies{All: &policy.Policy{Timeout: 3 * time.Second, OfferAs: policy.Original}})
	r.SetLocal("HookRule", []Registration{local("HookRule", "a")})
	e, ok := r.Snapshot().Handler("rule.a")
	if !ok || e.Handler.Timeout != 3*time.Second {
		t.Fatalf("the handler is %+v", e)
	}
	if name, collision := r.Snapshot().Offered(e); name != "rule--a" || collision != "" {
		t.Errorf("it is offered as %s, %s", name, collision)
	}
	r.SetPolicies("a", Policies{All: &policy.Policy{Hooks: []string{"AfterClusterUpgrade"}}})
	if withheld := r.Snapshot().Withheld("a"); len(withheld) != 1 || len(r.Snapshot().All()) != 0 {
		t.Errorf("withheld are %+v", withheld)
	}
	r.SetPolicies("a", Policies{})
	if e, ok := r.Snapshot().Handler("rule.a"); !ok || e.Handler.Timeout != time.Second {
		t.Errorf("without policies, the handler is %+v", e)
	}
}
