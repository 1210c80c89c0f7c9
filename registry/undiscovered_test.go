// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// awaited lists what a snapshot does not know.
func awaited(s *Snapshot) (all []string) {
	for _, u := range s.Undiscovered() {
		all = append(all, u.String()+" "+string(u.Default))
	}
	return all
}

func TestUndiscoveredGoesWhenItIsRegisteredOrRemoved(t *testing.T) {
	r := New()
	registered := Registration{Name: "c", ClientConfig: ClientConfig{URL: "https://c.example"}}
	if err := r.Apply(registered); err != nil {
		t.Fatal(err)
	}
	r.SetUndiscovered([]Undiscovered{
		{Name: "b", Default: hook.Fail}, {Name: "a", Default: hook.Fail}, {Name: "c", Default: hook.Fail},
		{Unreadable: "manifest x", Default: hook.Fail},
	})
	before := r.Snapshot()
	first := []string{`ExtensionConfig "a" Fail`, `ExtensionConfig "b" Fail`, "manifest x Fail"}
	if diff := cmp.Diff(first, awaited(before)); diff != "" {
		t.Errorf("a registered one is known (-want +got):\n%s", diff)
	}
	r.SetUndiscovered([]Undiscovered{{Name: "b", Default: hook.Fail}})
	if r.Snapshot() != before {
		t.Error("to set the same again is a change")
	}
	registered.Name = "a"
	if err := r.Apply(registered); err != nil {
		t.Fatal(err)
	}
	r.RemoveAll([]string{"manifest x", "c", "never"})
	r.SetUndiscovered([]Undiscovered{{Name: "b", Default: hook.Ignore}})
	if diff := cmp.Diff([]string{`ExtensionConfig "b" Ignore`}, awaited(r.Snapshot())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(first, awaited(before)); diff != "" {
		t.Errorf("a snapshot has changed (-before +after):\n%s", diff)
	}
	for name, want := range map[string]bool{"v.b": true, "V--B": true, "v.a": false, "v": false, "beforeclustercreate": false} {
		if _, ok := r.Snapshot().UndiscoveredOf(name); ok != want {
			t.Errorf("UndiscoveredOf(%q) is %v", name, ok)
		}
	}
}

func TestEffectOfUndiscovered(t *testing.T) {
	for _, byDefault := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
		u := Undiscovered{Name: "a", Default: byDefault}
		for _, stated := range []hook.FailurePolicy{"", hook.Fail, hook.Ignore} {
			want := byDefault
			if stated != "" {
				want = stated
			}
			if got := u.Effect(&policy.Policy{OnUndiscovered: stated}); got != want {
				t.Errorf("default %s, policy %q: got %s", byDefault, stated, got)
			}
		}
		if got := u.Effect(nil); got != byDefault {
			t.Errorf("default %s, no policy: got %s", byDefault, got)
		}
	}
}

// What a policy does not list waits: it is not served under any name, and comes as soon as the policy allows it.
func TestHooksOfAPolicyWithholdHandlers(t *testing.T) {
	r := New()
	reg := Registration{Name: "acme", ClientConfig: ClientConfig{URL: "https://acme.example"}, Handlers: []Handler{
		{Name: "a", Hook: hook.GroupVersionHook{Group: "g", Version: "v1", Hook: "AfterClusterUpgrade"}, Timeout: 1, FailurePolicy: hook.Fail},
		{Name: "p", Hook: hook.GroupVersionHook{Group: "g", Version: "v1", Hook: "GeneratePatches"}, Timeout: 1, FailurePolicy: hook.Fail},
	}}
	only := func(hooks ...string) { r.SetPolicies("acme", Policies{All: &policy.Policy{Name: "p", Hooks: hooks}}) }
	only("AfterClusterUpgrade")
	if err := r.Apply(reg); err != nil {
		t.Fatal(err)
	}
	check := func(reason string, served, withheld []string) {
		t.Helper()
		s := r.Snapshot()
		var names, waiting []string
		for _, e := range s.All() {
			names = append(names, e.Name)
			if len(s.Handlers(e.Handler.Hook.GroupHook())) != 1 {
				t.Errorf("%s: %s is not served for its hook", reason, e.Name)
			}
		}
		for _, h := range s.Withheld("acme") {
			waiting = append(waiting, h.Name)
			if _, ok := s.Handler(h.Name + ".acme"); ok || len(s.Handlers(h.Hook.GroupHook())) > 0 {
				t.Errorf("%s: %s is served", reason, h.Name)
			}
		}
		if !slices.Equal(names, served) || !slices.Equal(waiting, withheld) {
			t.Errorf("%s: %q are served, and %q wait", reason, names, waiting)
		}
	}
	check("one is listed", []string{"a.acme"}, []string{"p"})
	only("AfterClusterUpgrade", "GeneratePatches")
	check("both are", []string{"a.acme", "p.acme"}, nil)
	only("BeforeClusterDelete")
	check("none is", nil, []string{"a", "p"})
	r.SetPolicies("acme", Policies{})
	check("without a policy", []string{"a.acme", "p.acme"}, nil)
	if s := r.Snapshot(); len(s.Withheld("other")) > 0 || len(s.Registrations()) != 1 || len(s.Registrations()[0].Handlers) != 2 {
		t.Error("the registration has changed")
	}
}

// A name that may come is told from one that nothing brings.
func TestAwaited(t *testing.T) {
	create := hook.GroupHook{Group: hook.Group, Hook: "BeforeClusterCreate"}
	r := New()
	r.SetRollouts([]Rollout{{Name: "acme", Stable: "acme-v6", Candidate: "acme-v7"}})
	const gone = `ExtensionConfig "acme-v6" of ExtensionRollout "acme" has not been discovered`
	for name, want := range map[string]string{"v.acme": gone, "V--Acme": gone, "v.other": "", "v": ""} {
		if got := r.Snapshot().Awaited(name, create); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	r.SetUndiscovered([]Undiscovered{{Name: "acme-v6"}, {Name: "acme-v7", Cause: "refused"}, {Name: "long"}})
	if got := r.Snapshot().Awaited("v.acme", create); got != `ExtensionConfig "acme-v6" has not been discovered yet` {
		t.Errorf("got %q", got)
	}
	if err := r.Apply(Registration{Name: "acme-v6", ClientConfig: ClientConfig{URL: "https://v6"}}); err != nil {
		t.Fatal(err)
	}
	if got := r.Snapshot().Awaited("v.acme", create); got != `ExtensionConfig "acme-v7" has not been discovered: refused` {
		t.Errorf("got %q", got)
	}
	// The hash of a label may have replaced the end of the name of the ExtensionConfig, or all of it.
	for _, handler := range []string{strings.Repeat("h", 50), strings.Repeat("h", 63)} {
		label := Label(handler + ".long")
		if got := r.Snapshot().Awaited(label, create); !strings.HasPrefix(got, `ExtensionConfig "`) {
			t.Errorf("%s: got %q", label, got)
		}
	}
}
