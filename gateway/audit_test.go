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
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

// auditLine is in each line about what a rule would have answered.
const auditLine = "the rule would have answered if its action were not Audit"

// newAudit is newRuled with a rule that only audits.
func newAudit(t *testing.T, hookName, spec string) *fixture {
	t.Helper()
	return newRuled(t, hookName, v1alpha1.HookRuleAudit, spec)
}

// newRuled returns a gateway with a rule r of a hook.
func newRuled(t *testing.T, hookName string, action v1alpha1.HookRuleAction, spec string) *fixture {
	t.Helper()
	rule := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(spec), &rule.Spec); err != nil {
		t.Fatal(err)
	}
	rule.Name, rule.Spec.Hook, rule.Spec.Action = "r", hookName, action
	reg := compiledRule(t, newRuleCompiler(t), rule)
	r := registry.New()
	if err := r.SetLocal(hookrule.Kind, []registry.Registration{reg})[0]; err != nil {
		t.Fatal(err)
	}
	r.SetReady()
	return newFixtureFor(t, r, nil, nil)
}

// A rule with action: Audit lets pass what it would not, and says so.
func TestAudit(t *testing.T) {
	for name, tc := range map[string]struct{ hook, spec, would string }{
		"Hold":    {"BeforeClusterUpgrade", `hold: [{if: 'true', message: '"not today"'}]`, "hold: not today"},
		"Failure": {"AfterClusterUpgrade", `fail: [{if: 'true', message: '"never"'}]`, "failure: never"},
		"Nothing": {"BeforeClusterUpgrade", `hold: [{if: 'false', message: '"not today"'}]`, ""},
		"Error": {"BeforeClusterUpgrade", `hold: [{if: 'request.cluster.metadata.annotations["none"] == ""', message: '""'}]`,
			`error: HookRule "r": spec.hold[0].if: the expression fails for this request: no such key: none`},
		"Condition": {"BeforeClusterUpgrade", `{matchConditions: [{name: c, expression: 'request.cluster.metadata.annotations["none"] == ""'}], hold: [{if: 'true', message: '""'}]}`,
			`error: HookRule "r": match condition "c": the expression fails for this request: no such key: none`},
		"Namespace": {"BeforeClusterUpgrade", `{namespaceSelector: {matchLabels: {tier: gold}}, hold: [{if: 'true', message: '""'}]}`,
			`error: the namespaceSelector of HookRule "r" depends on the labels of namespace "team-payments", which are not known: try again, or add the Namespace to the directory of manifests`},
		"Topology": {"ValidateTopology", `validations: [{if: 'true', message: '"too large"'}]`, "failure: too large"},
		"Patches": {"GeneratePatches", `patches: [{selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, ` +
			`matchResources: {infrastructureCluster: true}}, mergePatch: '{"spec": {"template": {"spec": {"region": "x"}}}}'}]`, "patches: patches of templates: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAudit(t, tc.hook, tc.spec)
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
			logged := strings.Contains(f.log.String(), auditLine)
			if !says {
				if len(f.audited) > 0 || logged {
					t.Errorf("got %q, logged: %t", f.audited, logged)
				}
				return
			}
			logged = logged && strings.Contains(f.log.String(), "namespace=team-payments cluster=payments-eu-west-1 answer=")
			if len(f.audited) != 1 || f.audited[0] != "r of team-payments/payments-eu-west-1: "+tc.would || !logged {
				t.Errorf("got %q, want %q; logged: %t", f.audited, tc.would, logged)
			}
			wantCount(t, f.metrics, "hookgate_rule_audits_total", 1, tc.hook, "rule.r", outcome)
			wantCount(t, f.metrics, "hookgate_handler_calls_total", 1, tc.hook, "rule.r", "success", "")
		})
	}
}

// All calls to a rule that only audits are counted, and few are logged.
func TestAuditLines(t *testing.T) {
	const calls = limits.AuditLines + 20
	f := newAudit(t, "AfterClusterUpgrade", `fail: [{if: 'true', message: '"never"'}]`)
	path := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "AfterClusterUpgrade"}.Path("")
	body, start := string(samples.Body("AfterClusterUpgrade")), time.Now()
	for range calls {
		f.post(t, path, body)
	}
	most := limits.AuditLines + 1 + int(limits.AuditLinesPerSecond*time.Since(start).Seconds())
	if got := strings.Count(f.log.String(), auditLine); got < limits.AuditLines || got > most {
		t.Errorf("%d lines of %d calls, want at most %d", got, calls, most)
	}
	wantCount(t, f.metrics, "hookgate_rule_audits_total", calls, "AfterClusterUpgrade", "rule.r", "failure")
}

// An explanation says which handlers only audit, and with a call, what they would have answered.
func TestExplainAudit(t *testing.T) {
	f := newAudit(t, "ValidateTopology", `validations: [{if: 'true', message: '"too large"'}]`)
	path := ExplainPrefix + hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "ValidateTopology"}.Path("")
	for query, want := range map[string]string{"": "", "?call=true": "failure: too large"} {
		var x Explanation
		if err := json.Unmarshal(f.post(t, path+query, string(samples.Body("ValidateTopology"))).body, &x); err != nil {
			t.Fatal(err)
		}
		if len(x.Handlers) != 1 || !x.Handlers[0].Audits {
			t.Errorf("the handlers are %+v", x.Handlers)
		}
		if got := x.Answer; want != "" && (got == nil || got.Audited != want || !strings.Contains(string(got.Response), `"Success"`)) {
			t.Errorf("the answer is %+v, want %q", got, want)
		}
	}
}
