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

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/policy"
)

// answers is a Local of a kind.
type answers struct{ kind string }

func (a *answers) Kind() string { return a.kind }

func (*answers) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, errors.New("nothing is called here")
}

// local returns a registration of a kind, with the handler rule or job.
func local(kind, name string) Registration {
	handler := map[string]string{"HookRule": "rule", "HookJob": "job"}[kind]
	return Registration{
		Name: name, Local: &answers{kind},
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

// An ExtensionConfig precedes what has its name without a server, registered or not, whichever comes first.
func TestExtensionConfigPrecedesLocal(t *testing.T) {
	r := New()
	r.SetLocal("HookRule", []Registration{local("HookRule", "a"), local("HookRule", "b")})
	expectServed(t, r, "alone", `HookRule "a"`, `HookRule "b"`)
	if e, ok := r.Snapshot().Handler("RULE--A"); !ok || e.Name != "rule.a" {
		t.Errorf("by its label, the handler is %+v", e)
	}
	mustApply(t, r, registration("a", "v"))
	expectServed(t, r, "beside an ExtensionConfig", `ExtensionConfig "a"`, `HookRule "b"`)
	if got := r.Snapshot().TakenLocal("HookRule", "a"); got != `the name of ExtensionConfig "a"` {
		t.Errorf("the name is %q", got)
	}
	if _, ok := r.Snapshot().Handler("rule.a"); ok {
		t.Error("its handler is still served")
	}
	r.SetLocal("HookRule", []Registration{local("HookRule", "a"), local("HookRule", "b")})
	expectServed(t, r, "set again", `ExtensionConfig "a"`, `HookRule "b"`)
	r.RemoveAll([]string{"a", "b"})
	expectServed(t, r, "without the ExtensionConfig", `HookRule "a"`, `HookRule "b"`)

	r.SetUndiscovered([]Undiscovered{{Name: "b", Default: hook.Fail}})
	expectServed(t, r, "beside one that is not known", `HookRule "a"`)
	if diff := cmp.Diff([]string{`ExtensionConfig "b" Fail`}, awaited(r.Snapshot())); diff != "" {
		t.Errorf("calls wait for (-want +got):\n%s", diff)
	}
	if got := r.Snapshot().TakenLocal("HookRule", "b"); got != `the name of ExtensionConfig "b"` {
		t.Errorf("the name is %q", got)
	}
	r.SetLocal("HookRule", []Registration{local("HookRule", "b")})
	if diff := cmp.Diff([]string{`ExtensionConfig "b" Fail`}, awaited(r.Snapshot())); diff != "" {
		t.Errorf("with another rule, calls wait for (-want +got):\n%s", diff)
	}
	r.RemoveAll([]string{"b"})
	expectServed(t, r, "without it", `HookRule "b"`)
	r.SetLocal("HookRule", nil)
	expectServed(t, r, "without rules")
}

// Of two kinds without servers with one name, none is served.
func TestLocalsOfTwoKinds(t *testing.T) {
	r := New()
	r.SetLocal("HookRule", []Registration{local("HookRule", "a"), local("HookRule", "b")})
	r.SetLocal("HookJob", []Registration{local("HookJob", "b"), local("HookJob", "c")})
	expectServed(t, r, "both", `HookRule "a"`, `HookJob "c"`)
	s := r.Snapshot()
	for kind, want := range map[string]string{"HookRule": `the name of HookJob "b"`, "HookJob": `the name of HookRule "b"`} {
		if got := s.TakenLocal(kind, "b"); got != want {
			t.Errorf("to a %s, the name is %q, want %q", kind, got, want)
		}
	}
	if got := s.TakenName("b"); got != `the name of HookJob "b"` {
		t.Errorf("to a new chain, the name is %q", got)
	}
	if got := s.TakenByLocal("c"); got != `the name of HookJob "c"` {
		t.Errorf("to a new ExtensionConfig, the name is %q", got)
	}
	r.SetLocal("HookJob", []Registration{local("HookJob", "c")})
	expectServed(t, r, "one", `HookRule "a"`, `HookRule "b"`, `HookJob "c"`)
	if got := r.Snapshot().TakenLocal("HookRule", "b"); got != "" {
		t.Errorf("the name is %q", got)
	}
}

// A registration with the Local that it had keeps its pointer, so that nothing changes; one that is wrong is refused
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
		t.Error("another Local is no change")
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
	mustApply(t, r, registration(longest, "v"))
	if e, ok := r.Snapshot().Handler(Label("rule." + longest)); ok {
		t.Errorf("the label of a rule that is not served is of %s", e.Name)
	}
	r.Remove(longest)
	if _, ok := r.Snapshot().Handler(Label("rule." + longest)); !ok {
		t.Error("the label is not there again")
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
