// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// patching returns a registration with one handler of GeneratePatches per name.
func patching(name string, handlers ...string) Registration {
	reg := registration(name, handlers...)
	for i := range reg.Handlers {
		reg.Handlers[i].Hook = gvh("GeneratePatches")
	}
	return reg
}

// asThey returns policies that offer the handlers of an ExtensionConfig under the names that they have.
func asThey() Policies {
	return Policies{All: &policy.Policy{Name: "original", OfferAs: policy.Original}}
}

// offered returns the names under which handlers are offered, by registered name.
func offered(r *Registry) map[string]string {
	s, m := r.Snapshot(), map[string]string{}
	for _, e := range s.All() {
		m[e.Name], _ = s.Offered(e)
	}
	return m
}

func TestHandlersAreOfferedUnderTheirOwnNames(t *testing.T) {
	r := New(gvh("BeforeClusterCreate").GroupHook())
	long := strings.Repeat("h", 60)
	mustApply(t, r, patching("acme", "p", long), patching("other", "p"), registration("lifecycle", "gate"))
	qualified := offered(r)
	want := map[string]string{
		"p.acme": "p--acme", long + ".acme": Label(long + ".acme"), "p.other": "p--other", "gate.lifecycle": "gate--lifecycle",
	}
	if diff := cmp.Diff(want, qualified); diff != "" {
		t.Errorf("by default: -want +got\n%s", diff)
	}
	if _, ok := r.Snapshot().Handler("p"); ok {
		t.Error("a name without an ExtensionConfig means nothing by default")
	}

	before := r.Snapshot()
	r.SetAllPolicies(map[string]Policies{"acme": asThey(), "lifecycle": asThey()})
	want["p.acme"], want[long+".acme"] = "p", long
	if diff := cmp.Diff(want, offered(r)); diff != "" {
		t.Errorf("with offerAs: Original: -want +got\n%s", diff)
	}
	s := r.Snapshot()
	for _, name := range []string{"p", "P", "p--acme", "p.acme"} {
		if e, ok := s.Handler(name); !ok || e.Name != "p.acme" {
			t.Errorf("Handler(%q) = %v, %t", name, e, ok)
		}
	}
	if e, ok := s.Handler(Label(long + ".acme")); !ok || e.Handler.Name != long {
		t.Errorf("the label with a hash leads to %v, %t", e, ok)
	}
	if e, ok := s.Handler("gate"); ok {
		t.Errorf("handlers of a lifecycle hook have no name to be called by, got %v", e)
	}
	if _, ok := before.Handler("p"); ok {
		t.Error("a snapshot never changes")
	}
	if all := append(s.Collisions("acme"), s.Collisions("lifecycle")...); len(all) > 0 {
		t.Errorf("got collisions %q", all)
	}

	r.SetAllPolicies(map[string]Policies{"acme": {}, "lifecycle": {}})
	if diff := cmp.Diff(qualified, offered(r)); diff != "" {
		t.Errorf("without the policy: -want +got\n%s", diff)
	}
	if _, ok := r.Snapshot().Handler("p"); ok {
		t.Error("the name is gone with the policy")
	}
}

// A name that could mean something else stays qualified, whatever comes first, until that is gone.
func TestNamesThatMeanSomethingElseStayQualified(t *testing.T) {
	hidden := "a-" + strings.Repeat("b", 60) // its label has a hash, and no "--"
	for name, tc := range map[string]struct {
		acme, other Registration
		otherPolicy Policies
		want        map[string]string // of other, but for the label
		collision   string
	}{
		"OtherExtension": {
			patching("acme", "p"), patching("other", "p"), asThey(), map[string]string{"p.other": "p--other"},
			`handler "p.acme" is offered as "p--acme", because "p" is also the name of handler "p.other"`,
		},
		"Label": {
			patching("acme", "p--other"), patching("other", "p"), Policies{}, map[string]string{"p.other": "p--other"},
			fmt.Sprintf(`handler "p--other.acme" is offered as %q, because "p--other" is also the label of handler "p.other"`,
				Label("p--other.acme")),
		},
		"HashedLabel": {
			patching("acme", Label(hidden+".other")), patching("other", hidden), Policies{},
			map[string]string{hidden + ".other": Label(hidden + ".other")},
			fmt.Sprintf(`because %q is also the label of handler %q`, Label(hidden+".other"), hidden+".other"),
		},
	} {
		for _, acmeFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, acmeFirst), func(t *testing.T) {
				r := New()
				set := []func(){
					func() { r.SetPolicies("acme", asThey()); mustApply(t, r, tc.acme) },
					func() { mustApply(t, r, tc.other); r.SetPolicies("other", tc.otherPolicy) },
				}
				if !acmeFirst {
					slices.Reverse(set)
				}
				for _, f := range set {
					f()
				}
				own := tc.acme.Handlers[0].Name
				want := map[string]string{own + ".acme": Label(own + ".acme")}
				maps.Copy(want, tc.want)
				if diff := cmp.Diff(want, offered(r)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				s := r.Snapshot()
				if got := s.Collisions("acme"); len(got) != 1 || !strings.Contains(got[0], tc.collision) {
					t.Errorf("Collisions(acme) = %q, want %s", got, tc.collision)
				}
				if e, ok := s.Handler(own); ok && e.Registration.Name == "acme" {
					t.Errorf("Handler(%q) = %v", own, e)
				}
				for registered, label := range want {
					if e, ok := s.Handler(label); !ok || e.Name != registered {
						t.Errorf("Handler(%q) = %v, %t", label, e, ok)
					}
				}

				r.Remove("other")
				if got := offered(r)[own+".acme"]; got != own {
					t.Errorf("once the other is gone, it is offered as %q", got)
				}
				if e, ok := r.Snapshot().Handler(own); !ok || e.Registration.Name != "acme" {
					t.Errorf("Handler(%q) = %v, %t", own, e, ok)
				}
			})
		}
	}
}

func TestTheGatewaysOwnNamesAreNotGiven(t *testing.T) {
	r := New(hook.GroupHook{Group: hook.Group, Hook: "BeforeClusterDelete"})
	r.SetPolicies("acme", asThey())
	mustApply(t, r, patching("acme", "beforeclusterdelete", "p"))
	want := map[string]string{"beforeclusterdelete.acme": "beforeclusterdelete--acme", "p.acme": "p"}
	if diff := cmp.Diff(want, offered(r)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	const why = `because "beforeclusterdelete" is also the name of the gateway's own handler of BeforeClusterDelete`
	if got := r.Snapshot().Collisions("acme"); len(got) != 1 || !strings.Contains(got[0], why) {
		t.Errorf("Collisions = %q, want %s", got, why)
	}
}
