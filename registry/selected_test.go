// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// A lookup by labels finds all whose selection matches, in the order of their names, also after changes, and passes over
// those that require another value.
func TestHandlersForLabels(t *testing.T) {
	selectors := []string{"", "a=1", "a=2", "b=1,a=1", "a in (1)", "a in (1,2)", "a!=1", "a", "!a", "b=1", "a==2,c"}
	var all []Registration
	for i, text := range selectors {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		reg := local("HookRule", fmt.Sprintf("r%02d", len(selectors)-i))
		reg.Selection = &policy.Policy{ObjectSelector: selector}
		all = append(all, reg)
	}
	gh := gvh("BeforeClusterUpgrade").GroupHook()
	r := New()
	extension := registration("r005")
	extension.Handlers = all[0].Handlers
	mustApply(t, r, extension)
	for _, step := range []struct {
		what  string
		rules []Registration
	}{{"all", all}, {"half", all[:len(all)/2]}, {"the first, of all", all[:1]}, {"all again", all}, {"none", nil}} {
		r.SetLocal("HookRule", step.rules)
		s := r.Snapshot()
		for _, of := range []labels.Set{nil, {}, {"a": "1"}, {"a": "2", "c": ""}, {"a": "1", "b": "1"}, {"b": "1"}, {"a": "3"}} {
			matching := func(entries []*Entry) (names []string) {
				for _, e := range entries {
					if own := e.Registration.Selection; own == nil || of == nil || own.ObjectSelector.Matches(of) {
						names = append(names, e.Name)
					}
				}
				return names
			}
			found := s.HandlersFor(gh, func() labels.Set { return of })
			if got, want := matching(found), matching(s.Handlers(gh)); !slices.Equal(got, want) {
				t.Errorf("%s: of a request with the labels %v, found are %q, want %q", step.what, of, got, want)
			}
			if of != nil && slices.ContainsFunc(found, func(e *Entry) bool { return e.Name == "rule.r10" }) && of["a"] != "1" {
				t.Errorf("%s: with the labels %v, the rule for a=1 is found", step.what, of)
			}
		}
	}
}

// A handler for everything is found whatever its registration selects, and no policy withholds or changes it.
func TestHandlerForEverything(t *testing.T) {
	reg := local("HookRule", "r")
	reg.Selection = &policy.Policy{ObjectSelector: labels.SelectorFromSet(labels.Set{"a": "1"})}
	after := reg.Handlers[0]
	after.Name, after.Hook, after.Everything = "places", gvh("AfterClusterUpgrade"), true
	reg.Handlers = append(reg.Handlers, after)
	r := New()
	r.SetLocal("HookRule", []Registration{reg})
	r.SetPolicies("r", Policies{All: &policy.Policy{Hooks: []string{"BeforeClusterUpgrade"}, FailurePolicy: hook.Ignore}})
	s := r.Snapshot()
	found := s.HandlersFor(after.Hook.GroupHook(), func() labels.Set { return labels.Set{"a": "2"} })
	if len(found) != 1 || found[0].Handler != after || found[0].Policy != nil {
		t.Errorf("found %v, withheld %v", found, s.Withheld("r"))
	}
	if e, ok := s.Handler("rule.r"); !ok || e.Handler.FailurePolicy != hook.Ignore {
		t.Errorf("the policy does not apply to the other handler: %+v", e)
	}
}
