// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// newRule returns a rule of the test, which fails BeforeClusterCreate with an expression as its message.
func newRule(t testing.TB, name, message string) *v1alpha1.HookRule {
	t.Helper()
	r := &v1alpha1.HookRule{}
	r.Name = name
	r.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	r.Spec.Hook = "BeforeClusterCreate"
	r.Spec.Fail = []v1alpha1.HookRuleFailure{{HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: message}}}
	return r
}

// awaitRule waits until the condition Ready of a rule is that one, for its present generation.
func awaitRule(t testing.TB, c client.Client, name, reason, message string) {
	t.Helper()
	eventually(t, name+" is "+reason+": "+message, func() (string, bool) {
		r := &v1alpha1.HookRule{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, r); err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ReadyCondition)
		if found == nil {
			return "no such condition", false
		}
		return found.Reason + ": " + found.Message, found.Reason == reason && strings.HasPrefix(found.Message, message) &&
			found.ObservedGeneration == r.Generation
	})
}

// The leader writes whether a rule is in effect. A mistake that the schema lets pass leaves its previous version there.
func TestRuleStaysInEffect(t *testing.T) {
	_, c := connect(t)
	r := start(t, nil)
	r.ready(t)
	rule := newRule(t, "stays", `"no"`)
	create(t, c, rule)
	awaitRule(t, c, "stays", "Ready", "Answers BeforeClusterCreate as handler rule.stays")
	before, _ := r.registry.Snapshot().Registration("stays")
	change := func(message string) {
		t.Helper()
		patch := client.MergeFrom(rule.DeepCopy())
		rule.Spec.Fail[0].Message = message
		if err := c.Patch(t.Context(), rule, patch); err != nil {
			t.Fatal(err)
		}
	}
	change("request.nothing")
	awaitRule(t, c, "stays", "Invalid", "spec.fail[0].message: Invalid value: line 1, column 8: undefined field 'nothing'")
	if now, ok := r.registry.Snapshot().Registration("stays"); !ok || now != before {
		t.Errorf("with a mistake in it, the registry has %+v", now)
	}
	change(`"not"`)
	awaitRule(t, c, "stays", "Ready", "")
	if now, ok := r.registry.Snapshot().Registration("stays"); !ok || now == before {
		t.Errorf("without the mistake, the registry has %+v", now)
	}
}

// A rule that only audits says so in its condition, and what it would have said is an event of it.
func TestRuleThatAudits(t *testing.T) {
	_, c := connect(t)
	r := start(t, nil)
	r.ready(t)
	rule := newRule(t, "audits", `"no"`)
	rule.Spec.Action = "Sometimes"
	const want = `spec.action: Unsupported value: "Sometimes": supported values: "Enforce", "Audit"`
	if err := c.Create(t.Context(), rule); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another action: got %v, want %s", err, want)
	}
	rule.Spec.Action = v1alpha1.HookRuleAudit
	create(t, c, rule)
	awaitRule(t, c, "audits", v1alpha1.AuditReason, "Answers BeforeClusterCreate as handler rule.audits, but only audits: ")
	r.Audited("audits", "team", "a", "failure: no")
	awaitEventOf(t, r, corev1.EventTypeNormal, "audits", "Audit", "failure: no")
}

func ruleManifest(t testing.TB, name, spec string) string {
	t.Helper()
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {" + watchedAs(t, name) + "}\nspec: {" + spec + "}\n"
}

// testRules shows each mistake in a rule as the API server refuses it, by the schema or by the webhook.
func (s *webhookServer) testRules(t *testing.T) {
	create(t, s, object(t, configManifest("v1beta2", watchedAs(t, "rule-taken"), `clientConfig: {url: "https://127.0.0.1:1"}`)))
	const (
		spec    = `hook: BeforeClusterUpgrade, `
		message = `message: '"no"'`
		patches = `hook: GeneratePatches, patches: [`
	)
	for reason, tc := range map[string]struct{ name, spec, want string }{
		"a name with a dot":              {"a.b", spec + "fail: [{if: 'true', " + message + "}]", "<nil>: Invalid value: metadata.name must be a DNS-1123 label of at most 63 characters: it is the name of a handler"},
		"if and unless":                  {"refused", spec + "fail: [{if: 'true', unless: 'true', " + message + "}]", "spec.fail[0]: Invalid value: must have one of if and unless"},
		"neither":                        {"refused", spec + "hold: [{" + message + "}]", "spec.hold[0]: Invalid value: must have one of if and unless"},
		"65 entries":                     {"refused", spec + "hold: [" + strings.Repeat("{if: 'true', "+message+"}, ", 65) + "]", "spec.hold: Too many: 65: must have at most 64 items"},
		"a hook that is none":            {"refused", "hook: BeforeClusterUpgrades, fail: [{if: 'true', " + message + "}]", `spec.hook: Invalid value: "BeforeClusterUpgrades": not a hook that a rule can answer: did you mean "BeforeClusterUpgrade"?`},
		"an unknown member":              {"refused", spec + "fail: [{if: request.clusters == null, " + message + "}]", "spec.fail[0].if: Invalid value: line 1, column 8: undefined field 'clusters'"},
		"a message that is no text":      {"refused", spec + "fail: [{if: 'true', message: '1'}]", "spec.fail[0].message: Invalid value: must be a text, but is of type int"},
		"two kinds of patches":           {"refused", patches + "{selector: {kind: A}, mergePatch: '{}', jsonPatches: [{op: remove, path: /spec/a}]}]", "spec.patches[0]: Invalid value: must have one of jsonPatches and mergePatch"},
		"another operation":              {"refused", patches + "{selector: {kind: A}, jsonPatches: [{op: move, path: /spec/a}]}]", `spec.patches[0].jsonPatches[0].op: Unsupported value: "move": supported values: "add", "replace", "remove"`},
		"a value of what is removed":     {"refused", patches + "{selector: {kind: A}, jsonPatches: [{op: remove, path: /spec/a, value: '1'}]}]", "spec.patches[0].jsonPatches[0]: Invalid value: add and replace must have a value, and remove must not have one"},
		"an unknown member of an item":   {"refused", patches + "{selector: {kind: A}, jsonPatches: [{op: add, path: /spec/a, value: item.objects}]}]", "spec.patches[0].jsonPatches[0].value: Invalid value: line 1, column 5: undefined field 'objects'"},
		"a reserved variable":            {"refused", "hook: DiscoverVariables, variables: [{name: builtin, schema: {openAPIV3Schema: {type: string}}}]", `spec.variables[0].name: Invalid value: "builtin": must not be builtin, and must not have a dot`},
		"a default of another type":      {"refused", "hook: DiscoverVariables, variables: [{name: a, schema: {openAPIV3Schema: {type: integer, default: x}}}]", `spec.variables[0].schema.openAPIV3Schema.default: Invalid value: "string"`},
		"an item of a whole request":     {"refused", "hook: ValidateTopology, validations: [{if: item.uid == '', " + message + "}]", "spec.validations[0].if: Invalid value: line 1, column 1: undeclared reference to 'item'"},
		"the name of an ExtensionConfig": {"rule-taken", spec + "fail: [{if: 'true', " + message + "}]", `metadata.name: Invalid value: "rule-taken": is the name of ExtensionConfig "rule-taken": choose another name`},
	} {
		t.Run(reason, func(t *testing.T) {
			eventually(t, "it is refused", func() (string, bool) { // once the gateway knows what is registered
				o := object(t, ruleManifest(t, tc.name, tc.spec))
				err := s.Create(t.Context(), o)
				if err == nil {
					return "allowed", s.Delete(t.Context(), o) != nil
				}
				got := refusal(t, err)
				return got, apierrors.IsInvalid(err) && strings.HasPrefix(got, tc.want)
			})
		})
	}
	s.warned()
	create(t, s, object(t, ruleManifest(t, "ruled", spec+"hold: [{unless: 'false', "+message+"}]")))
	if diff := cmp.Diff([]string(nil), s.warned()); diff != "" {
		t.Errorf("warnings of a rule (-want +got):\n%s", diff)
	}
	for kind, manifest := range map[string]string{
		"ExtensionConfig": configManifest("v1beta2", watchedAs(t, "ruled"), `clientConfig: {url: "https://127.0.0.1:1"}`),
		"HandlerChain":    chainManifest(t, "ruled", "hook: GeneratePatches, steps: [{handler: a.acme}]"),
	} {
		eventually(t, "a new "+kind+" with the name of a rule is refused", func() (string, bool) {
			o := object(t, manifest)
			err := s.Create(t.Context(), o)
			if err == nil {
				return "allowed", s.Delete(t.Context(), o) != nil
			}
			got := refusal(t, err)
			return got, got == `metadata.name: Invalid value: "ruled": is the name of HookRule "ruled": choose another name`
		})
	}
}
