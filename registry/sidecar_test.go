// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

func TestSoleExtensionKeepsItsNames(t *testing.T) {
	r := NewSidecar()
	mustApply(t, r, registration("sidecar", "check", "a--b"))
	r.SetPolicies("sidecar", Policies{All: &policy.Policy{FailurePolicy: hook.Ignore}}) // makes the entries anew
	s := r.Snapshot()
	if !s.IsSidecar() {
		t.Error("IsSidecar() = false")
	}
	if diff := cmp.Diff([]string{"a--b", "check"}, names(s.Handlers(gvh("BeforeClusterCreate").GroupHook()))); diff != "" {
		t.Errorf("Handlers: -want +got\n%s", diff)
	}
	for name, want := range map[string]bool{
		"check": true, "CHECK": true, "a--b": true, "check.sidecar": false, "check--sidecar": false, "b": false,
		"": false,
	} {
		if e, ok := s.Handler(name); ok != want || ok && e.Label != e.Name {
			t.Errorf("Handler(%q) = %+v, %t, want %t", name, e, ok, want)
		}
	}
	// The next version of the extension.
	mustApply(t, r, registration("sidecar", "verify"))
	if diff := cmp.Diff([]string{"verify"}, names(r.Snapshot().All())); diff != "" {
		t.Errorf("All: -want +got\n%s", diff)
	}
	r.Remove("sidecar")
	mustApply(t, r, registration("other", "check"))
}

func TestUnready(t *testing.T) {
	r := New()
	if got, want := r.Snapshot().Unready(), "the gateway has not read its ExtensionConfigs yet"; got != want {
		t.Errorf("Unready() = %q, want %q", got, want)
	}
	r.SetUnready("it waits for spring")
	before := r.Snapshot()
	r.SetUnready("it waits for spring")
	if got := r.Snapshot(); got != before || got.Unready() != "it waits for spring" {
		t.Errorf("Unready() = %q, a new snapshot: %t", got.Unready(), got != before)
	}
	mustApply(t, r, registration("a", "check"))
	if got := r.Snapshot().Unready(); got != "it waits for spring" {
		t.Errorf("after Apply, Unready() = %q", got)
	}
}
