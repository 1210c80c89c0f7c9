// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// BenchmarkRules is what the dispatcher does for a call that no rule matches, that five match of five, and that five
// match of 1,000.
func BenchmarkRules(b *testing.B) {
	rules := newRuleCompiler(b)
	req := &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: labelled(`{"team":"t0"}`), FromKubernetesVersion: "v1.35.0", ToKubernetesVersion: "v1.36.0",
	}
	caller := callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
		return c.Handler.Registration.InProcess.Answer(ctx, c.Request, policy.Guard{})
	})
	h := hookOf(b, "BeforeClusterUpgrade")
	for _, size := range []struct{ rules, matching int }{{0, 0}, {5, 5}, {1000, 0}, {1000, 5}} {
		b.Run(fmt.Sprintf("rules=%d/matching=%d", size.rules, size.matching), func(b *testing.B) {
			var registrations []registry.Registration
			for i := range size.rules {
				team := "t0"
				if i >= size.matching {
					team = fmt.Sprintf("t%d", i+1)
				}
				o := &v1alpha1.HookRule{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r%d", i)}}
				o.Spec.Hook = "BeforeClusterUpgrade"
				o.Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
				o.Spec.Hold = []v1alpha1.HookRuleHold{{HookRuleDecision: v1alpha1.HookRuleDecision{
					If: `request.toKubernetesVersion == "v1.0.0"`, Message: `"waits"`,
				}}}
				registrations = append(registrations, compiledRule(b, rules, o))
			}
			r := filled(b)
			for _, err := range r.SetLocal(hookrule.Kind, registrations) {
				if err != nil {
					b.Fatal(err)
				}
			}
			d := newDispatcher(r, fixedNamespaces{}, caller)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.dispatch(b.Context(), h, "", req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
