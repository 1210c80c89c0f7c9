// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// The policy that lifts a hold is the one whose liftedHolds count, so that those of another one stay in effect.
func TestAppliedTo(t *testing.T) {
	policy := func(name string, age time.Duration, lifts int) *v1alpha1.ExtensionPolicy {
		p := &v1alpha1.ExtensionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
		p.Spec.LiftedHolds = make([]v1alpha1.LiftedHold, lifts)
		return p
	}
	old, young, narrow, lifting := policy("old", time.Hour, 1), policy("young", 0, 0), policy("narrow", 0, 0), policy("lifting", 0, 1)
	type policies = []*v1alpha1.ExtensionPolicy
	for name, tt := range map[string]struct {
		wide, narrow policies
		want         string
	}{
		"None":            {nil, nil, "acme"},
		"Oldest":          {policies{young, old}, nil, "old"},
		"ByName":          {policies{young, policy("x", 0, 0), policy("a", 0, 0)}, nil, "a"},
		"Narrow":          {nil, policies{narrow}, "narrow"},
		"NarrowHasNone":   {policies{old}, policies{narrow}, "old"},
		"NarrowHasOthers": {policies{old}, policies{lifting}, "lifting"},
	} {
		got := appliedTo("acme", tt.wide, tt.narrow)
		if got.Name != tt.want || tt.want == "acme" && got.Spec.TargetRef.Name != "acme" {
			t.Errorf("%s: %s, want %s", name, got.Name, tt.want)
		}
	}
}
