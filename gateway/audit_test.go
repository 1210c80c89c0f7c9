// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/hookrule"
	"github.com/hookgate/hookgate/internal/policy"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

// A rule with action: Audit lets pass what it would not, and says so.
func TestAudit(t *testing.T) {
	cel, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(allHooks)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ hook, spec, would string }{
		"Hold":    {"BeforeClusterUpgrade", `hold: [{if: 'true', message: '"not today"'}]`, "hold: not today"},
		"Failure": {"AfterClusterUpgrade", `fail: [{if: 'true', message: '"never"'}]`, "failure: never"},
		"Nothing": {"BeforeClusterUpgrade", `hold: [{if: 'false', message: '"not today"'}]`, ""},
		"Error": {"BeforeClusterUpgrade", `hold: [{if: 'request.cluster.metadata.annotations["none"] == ""', message: '""'}]`,
			`error: HookRule "r": spec.hold[0].if: the expression fails for this request: no such key: none`},
		"Condition": {"BeforeClusterUpgrade", `{matchConditions: [{name: c, expression: 'request.cluster.metadata.annotations["none"] == ""'}], hold: [{if: 'true', message: '""'}]}`,
			`error: HookRule "r": match condition "c": the expression fails for this request: no such key: none`},
		"Namespace": {"BeforeClusterUpgrade", `{namespaceSelector: {matchLabels: {tier: gold}}, hold: [{if: 'true', message: '""'}]}`,
			`error: the labels of namespace "team-payments", on which the namespaceSelector of HookRule "r" depends, are not known: try again, or add the Namespace to the directory of manifests`},
		"Topology": {"ValidateTopology", `validations: [{if: 'true', message: '"too large"'}]`, "failure: too large"},
		"Patches": {"GeneratePatches", `patches: [{selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, ` +
			`matchResources: {infrastructureCluster: true}}, mergePatch: '{"spec": {"template": {"spec": {"region": "x"}}}}'}]`, "patches: patches of templates: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &v1alpha1.HookRule{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &rule.Spec); err != nil {
				t.Fatal(err)
			}
			rule.Name, rule.Spec.Hook, rule.Spec.Action = "r", tc.hook, v1alpha1.HookRuleAudit
			reg, errs := hookrule.NewCompiler(allHooks, cel, types, time.Now).Compile(rule)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			r := registry.New()
			if err := r.SetLocal(hookrule.Kind, []registry.Registration{reg})[0]; err != nil {
				t.Fatal(err)
			}
			r.SetReady()
			f := newFixtureFor(t, r, nil, nil)
			path := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: tc.hook}.Path("")
			if tc.hook == "GeneratePatches" {
				path += "/rule--r"
			}
			answer := f.post(t, path, string(samples.Body(tc.hook)))
			var plain map[string]any
			if err := json.Unmarshal(answer.body, &plain); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(plain, func(_ string, value any) bool { return value == "" || value == 0.0 || cmp.Equal(value, []any{}) })
			want := map[string]any{"apiVersion": hook.APIVersion, "kind": tc.hook + "Response", "status": "Success"}
			if diff := cmp.Diff(want, plain); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			outcome, _, says := strings.Cut(tc.would, ": ")
			logged := strings.Contains(f.log.String(), "the rule would have answered")
			if !says {
				if len(f.audited) > 0 || logged {
					t.Errorf("got %q, logged: %t", f.audited, logged)
				}
				return
			}
			if len(f.audited) != 1 || f.audited[0] != "r of team-payments/payments-eu-west-1: "+tc.would || !logged {
				t.Errorf("got %q, want %q; logged: %t", f.audited, tc.would, logged)
			}
			wantCount(t, f.metrics, "hookgate_rule_audits_total", 1, tc.hook, "rule.r", outcome)
			wantCount(t, f.metrics, "hookgate_handler_calls_total", 1, tc.hook, "rule.r", "success", "")
		})
	}
}
