// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// What an object was compiled to stands for another one only if that says the same.
func TestSameSpec(t *testing.T) {
	with := func(change func(*v1alpha1.ExtensionPolicy)) *v1alpha1.ExtensionPolicy {
		p := &v1alpha1.ExtensionPolicy{}
		p.Name, p.Spec.TargetRef.Name, p.Spec.Order = "p", "acme", new(int32(3))
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExtensionPolicy)
		same   bool
	}{
		"Nothing": {func(*v1alpha1.ExtensionPolicy) {}, true},
		"Labels":  {func(p *v1alpha1.ExtensionPolicy) { p.Labels = map[string]string{"a": "b"} }, true},
		"Created": {func(p *v1alpha1.ExtensionPolicy) { p.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }, false},
		"Target":  {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Name = "other" }, false},
		"Order":   {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Order = nil }, false},
	} {
		if got := SameSpec(with(func(*v1alpha1.ExtensionPolicy) {}), with(tc.change)); got != tc.same {
			t.Errorf("%s: same is %t", name, got)
		}
	}
}
