// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/crd"
)

// readCRD reads the CustomResourceDefinition of a kind, which has its name in the plural.
func readCRD(t testing.TB, plural string) *crd.Definition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "crd", "hookgate.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var stored apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &stored); err != nil {
		t.Fatal(err)
	}
	return crd.Compile(t, &stored)
}

func TestExtensionPolicyCRDIsValid(t *testing.T) {
	isValid(t, readCRD(t, "extensionpolicies"), "Extension", "Handler", "Accepted", "Reason", "Age")
}

// isValid checks the names of the columns, the scope, and that there is a status.
func isValid(t *testing.T, c *crd.Definition, wanted ...string) {
	t.Helper()
	// Of the only version, the internal form has these at the top.
	var columns []string
	for _, column := range c.Internal.Spec.AdditionalPrinterColumns {
		columns = append(columns, column.Name)
	}
	for _, want := range wanted {
		if !slices.Contains(columns, want) {
			t.Errorf("no column %s in %v", want, columns)
		}
	}
	if c.Internal.Spec.Scope != apiextensions.ClusterScoped || c.Internal.Spec.Subresources == nil || c.Internal.Spec.Subresources.Status == nil {
		t.Error("the kind must be cluster-scoped and have a status")
	}
}

// policyManifest is a policy named p with that spec, in YAML's flow style.
func policyManifest(spec string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: p\nspec: " + spec + "\n"
}

// The schema and the directory source refuse the same policies, each with a text that names the field. Rules that a
// schema cannot express are left to the source and the controller.
func TestExtensionPolicyRules(t *testing.T) {
	schema := readCRD(t, "extensionpolicies")
	words := newDecoder(t)
	long := strings.Repeat("x", 64)
	tests := map[string]struct {
		reason string
		spec   string
		schema string // part of what the schema says; empty if it takes the policy
		source string // part of what the source says; empty if it takes the policy
	}{
		"All": {
			"every member", `{targetRef: {name: acme, handler: v}, clusterAPIVersion: v1beta1, timeoutSeconds: 30, failurePolicy: Ignore, order: -5,
  objectSelector: {matchLabels: {tier: gold}, matchExpressions: [{key: a, operator: In, values: [b]}]},
  matchConditions: [{name: big, expression: "size(request.items) > 1"}, {name: other.Name_1, expression: "true"}]}`, "", "",
		},
		"One":              {"one setting is enough, also if it is zero", `{targetRef: {name: acme}, order: 0}`, "", ""},
		"Nothing":          {"a policy that says nothing", `{targetRef: {name: acme}}`, "must set at least one of", "must set at least one of"},
		"NoTarget":         {"a policy without a target", `{order: 1}`, "spec.targetRef", "spec.targetRef.name: Required value"},
		"NoName":           {"a policy without a target", `{targetRef: {handler: v}, order: 1}`, "spec.targetRef.name", "spec.targetRef.name: Required value"},
		"Name":             {"an ExtensionConfig is named as a label", `{targetRef: {name: a.b}, order: 1}`, "spec.targetRef.name: Invalid value", "spec.targetRef.name: Invalid value"},
		"LongName":         {"and that is short", `{targetRef: {name: ` + long + `}, order: 1}`, "spec.targetRef.name: Too long", "spec.targetRef.name: Invalid value"},
		"RegisteredName":   {"the handler's name is the one from discovery", `{targetRef: {name: acme, handler: v.acme}, order: 1}`, "spec.targetRef.handler: Invalid value", "give the name from Discovery"},
		"TimeoutZero":      {"0 is not a timeout", `{targetRef: {name: acme}, timeoutSeconds: 0}`, "spec.timeoutSeconds: Invalid value", "spec.timeoutSeconds: Invalid value: 0: must be between 1 and 30"},
		"TimeoutLong":      {"nor is more than 30", `{targetRef: {name: acme}, timeoutSeconds: 31}`, "spec.timeoutSeconds: Invalid value", "spec.timeoutSeconds: Invalid value: 31: must be between 1 and 30"},
		"TimeoutText":      {"a number is a number", `{targetRef: {name: acme}, timeoutSeconds: "5"}`, "spec.timeoutSeconds: Invalid value", "spec.timeoutSeconds: Invalid type: string, must be a whole number"},
		"Protocol":         {"there are two", `{targetRef: {name: acme}, protocol: SOAP}`, "spec.protocol: Unsupported value", `spec.protocol: Unsupported value: "SOAP"`},
		"Messages":         {"they alone", `{targetRef: {name: acme, handler: v}, messages: Steady}`, "", ""},
		"MessagesUnknown":  {"one of two", `{targetRef: {name: acme}, messages: Same}`, "spec.messages", "spec.messages: Unsupported value"},
		"Release":          {"the release alone", `{targetRef: {name: acme}, clusterAPIRelease: v1.12}`, "", ""},
		"ReleaseForm":      {"a minor release", `{targetRef: {name: acme}, clusterAPIRelease: v1.12.4}`, "spec.clusterAPIRelease", "spec.clusterAPIRelease: Unsupported value"},
		"ReleaseOld":       {"it sent v1beta1 only", `{targetRef: {name: acme}, clusterAPIRelease: v1.11, clusterAPIVersion: v1beta2}`, "clusterAPIVersion contradicts clusterAPIRelease", "contradicts clusterAPIVersion"},
		"ReleaseNew":       {"it sends v1beta2 only", `{targetRef: {name: acme}, clusterAPIRelease: v1.14, clusterAPIVersion: v1beta1}`, "clusterAPIVersion contradicts clusterAPIRelease", "contradicts clusterAPIVersion"},
		"ReleaseBoth":      {"v1.12 sent both", `{targetRef: {name: acme}, clusterAPIRelease: v1.12, clusterAPIVersion: v1beta1}`, "", ""},
		"ObjectVersion":    {"there are two", `{targetRef: {name: acme}, clusterAPIVersion: v1alpha4}`, "spec.clusterAPIVersion: Unsupported value", `spec.clusterAPIVersion: Unsupported value: "v1alpha4"`},
		"HandlersProtocol": {"an extension speaks one", `{targetRef: {name: acme, handler: v}, protocol: GRPC}`, "protocol is for all handlers", "protocol is for all handlers"},
		"FailurePolicy":    {"there are two", `{targetRef: {name: acme}, failurePolicy: ignore}`, "spec.failurePolicy: Unsupported value", `spec.failurePolicy: Unsupported value: "ignore"`},
		"OrderLarge":       {"an order has 32 bits", `{targetRef: {name: acme}, order: 2147483648}`, "type integer with format int32 in spec.order", "spec.order: Invalid type"},
		"Selector":         {"a selector that the schema takes may still be none", `{targetRef: {name: acme}, objectSelector: {matchExpressions: [{key: a, operator: Is}]}}`, "", "spec.objectSelector.matchExpressions[0].operator: Invalid value"},
		"SelectorValue":    {"label values are short", `{targetRef: {name: acme}, objectSelector: {matchLabels: {a: "b c"}}}`, "", "spec.objectSelector.matchLabels: Invalid value"},
		"NoConditions":     {"an empty list says nothing", `{targetRef: {name: acme}, matchConditions: []}`, "spec.matchConditions", "must set at least one of"},
		"SameName":         {"conditions differ by name", `{targetRef: {name: acme}, matchConditions: [{name: a, expression: "true"}, {name: a, expression: "false"}]}`, "spec.matchConditions[1]: Duplicate value", "spec.matchConditions[1].name: Duplicate value"},
		"ConditionName":    {"a name is readable", `{targetRef: {name: acme}, matchConditions: [{name: "a b", expression: "true"}]}`, "spec.matchConditions[0].name: Invalid value", "spec.matchConditions[0].name: Invalid value"},
		"NoConditionName":  {"a condition has a name", `{targetRef: {name: acme}, matchConditions: [{expression: "true"}]}`, "spec.matchConditions[0].name: Required value", "spec.matchConditions[0].name: Required value"},
		"LongCondition":    {"and that is short", `{targetRef: {name: acme}, matchConditions: [{name: ` + long + `, expression: "true"}]}`, "spec.matchConditions[0].name: Too long", "spec.matchConditions[0].name: Too long"},
		"NoExpression":     {"a condition has an expression", `{targetRef: {name: acme}, matchConditions: [{name: a}]}`, "spec.matchConditions[0].expression: Required value", "spec.matchConditions[0].expression: Required value"},
		"LongExpression":   {"that is not endless", `{targetRef: {name: acme}, matchConditions: [{name: a, expression: "true || '` + strings.Repeat("x", 4096) + `' == ''"}]}`, "spec.matchConditions[0].expression: Too long", "expression code point size exceeds limit"},
		"Expression":       {"the error names the place in the expression", `{targetRef: {name: acme}, matchConditions: [{name: a, expression: "true"}, {name: b, expression: "request.a == 1 && object.b"}]}`, "", "spec.matchConditions[1].expression: Invalid value: line 1, column 19: undeclared reference to 'object'"},
		"TooMany":          {"conditions are counted", `{targetRef: {name: acme}, matchConditions: [` + manyConditions(65) + `]}`, "spec.matchConditions: Too many", "spec.matchConditions: Too many"},
		"AsManyAsPossible": {"64 are not too many", `{targetRef: {name: acme}, matchConditions: [` + manyConditions(64) + `]}`, "", ""},
		"Unknown":          {"a member that does not exist", `{targetRef: {name: acme}, order: 1, retries: {}}`, "unknown field spec.retries", `unknown field "spec.retries"`},
		"Limits":           {"the least and the most", `{targetRef: {name: acme}, limits: {maxInFlight: 1, maxWaiting: 0}, circuit: {mode: Enabled, consecutiveFailures: 1000, failureRatePercent: 100, minOpenSeconds: 3600, maxOpenSeconds: 3600}}`, "", ""},
		"HandlersLimits":   {"an extension has them", `{targetRef: {name: acme, handler: v}, limits: {maxInFlight: 1}}`, "limits are for all handlers", "limits are for all handlers"},
		"HandlersCircuit":  {"an extension has one", `{targetRef: {name: acme, handler: v}, circuit: {mode: Disabled}}`, "circuit is for all handlers", "circuit is for all handlers"},
		"NoLimits":         {"limits that say nothing", `{targetRef: {name: acme}, limits: {}}`, "spec.limits", "spec.limits: Required value: must set at least one of maxInFlight"},
		"NoCircuit":        {"a circuit that says nothing", `{targetRef: {name: acme}, circuit: {}}`, "spec.circuit", "spec.circuit: Required value: must set at least one of mode"},
		"InFlight0":        {"no call at all is no limit", `{targetRef: {name: acme}, limits: {maxInFlight: 0}}`, "spec.limits.maxInFlight: Invalid value", "spec.limits.maxInFlight: Invalid value: 0: must be between 1 and 65536"},
		"Waiting65537":     {"nor is everything", `{targetRef: {name: acme}, limits: {maxWaiting: 65537}}`, "spec.limits.maxWaiting: Invalid value", "spec.limits.maxWaiting: Invalid value: 65537: must be between 0 and 65536"},
		"Cache":            {"the longest time", `{targetRef: {name: acme}, cache: {ttlSeconds: 3600}}`, "", ""},
		"HandlersCache":    {"an extension has one", `{targetRef: {name: acme, handler: v}, cache: {ttlSeconds: 1}}`, "cache is for all handlers", "cache is for all handlers"},
		"NoTTL":            {"answers are kept for some time", `{targetRef: {name: acme}, cache: {}}`, "spec.cache.ttlSeconds: Required value", "must be between 1 and 3600"},
		"TTL0":             {"answers are kept for some time", `{targetRef: {name: acme}, cache: {ttlSeconds: 0}}`, "spec.cache.ttlSeconds: Invalid value", "must be between 1 and 3600"},
		"TTL3601":          {"but not for ever", `{targetRef: {name: acme}, cache: {ttlSeconds: 3601}}`, "spec.cache.ttlSeconds: Invalid value", "must be between 1 and 3600"},
		"CircuitMode":      {"there are two", `{targetRef: {name: acme}, circuit: {mode: Never}}`, "spec.circuit.mode: Unsupported value", `spec.circuit.mode: Unsupported value: "Never"`},
		"Failures0":        {"an extension that never fails", `{targetRef: {name: acme}, circuit: {consecutiveFailures: 0}}`, "spec.circuit.consecutiveFailures: Invalid value", "must be between 1 and 1000"},
		"Rate101":          {"no more than all", `{targetRef: {name: acme}, circuit: {failureRatePercent: 101}}`, "spec.circuit.failureRatePercent: Invalid value", "must be between 1 and 100"},
		"MinOpen0":         {"some time passes", `{targetRef: {name: acme}, circuit: {minOpenSeconds: 0}}`, "spec.circuit.minOpenSeconds: Invalid value", "must be between 1 and 3600"},
		"MaxOpen3601":      {"but not for ever", `{targetRef: {name: acme}, circuit: {maxOpenSeconds: 3601}}`, "spec.circuit.maxOpenSeconds: Invalid value", "must be between 1 and 3600"},
		"MinAboveMax":      {"the least is not more than the most", `{targetRef: {name: acme}, circuit: {minOpenSeconds: 3, maxOpenSeconds: 2}}`, "maxOpenSeconds must not be less than minOpenSeconds", "spec.circuit.maxOpenSeconds: Invalid value: 2: must not be less than minOpenSeconds"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			agree(t, schema, words, tc.reason, policyManifest(tc.spec), `ExtensionPolicy "p"`, tc.schema, tc.source)
		})
	}
}

// agree checks what the schema and the directory source say of an object; empty if they take it.
func agree(t *testing.T, schema *crd.Definition, words *Decoder, reason, manifest, object, ofSchema, ofSource string) {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &parsed); err != nil {
		t.Fatal(err)
	}
	says(t, reason+" (schema)", schema.Problems(t, parsed, nil), ofSchema)

	docs, problems := parse("f.yaml", []byte(manifest))
	if len(docs) != 1 || len(problems) > 0 {
		t.Fatalf("got %d documents and %v", len(docs), problems)
	}
	o, problems := decode(&docs[0], words)
	if o == nil || o.Valid() != (ofSource == "") {
		t.Errorf("%s: got %+v", reason, o)
	}
	var texts []string
	for i := range problems {
		texts = append(texts, problems[i].Error())
		if p := problems[i]; !strings.HasPrefix(p.Error(), `f.yaml:`) || !strings.Contains(p.Error(), ": "+object+": ") {
			t.Errorf("the problem does not say where it is: %s", p.Error())
		}
	}
	says(t, reason+" (source)", texts, ofSource)
}

func says(t *testing.T, reason string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
		t.Errorf("%s: got %q, want %q", reason, got, want)
	}
}

func manyConditions(n int) string {
	var list []string
	for i := range n {
		text, _ := json.Marshal(map[string]string{"name": "c" + string(rune('A'+i/26)) + string(rune('a'+i%26)), "expression": "true"})
		list = append(list, string(text))
	}
	return strings.Join(list, ", ")
}

// Problems have the lines of their fields.
func TestExtensionPolicyProblemsNameTheLine(t *testing.T) {
	manifest := `# a comment
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata: {name: with.dots}
spec:
  targetRef:
    name: acme
  timeoutSeconds: 99
  matchConditions:
  - name: one
    expression: "true"
  - name: two
    expression: |
      request.a == 1 &&
      b
`
	want := []string{
		`configs/acme.yaml:8: ExtensionPolicy "with.dots": spec.timeoutSeconds: Invalid value: 99: must be between 1 and 30`,
		`configs/acme.yaml:13: ExtensionPolicy "with.dots": spec.matchConditions[1].expression: Invalid value: line 2, column 1: undeclared reference to 'b' (in container '')`,
	}
	objects, problems := decodeAll(t, manifest)
	if !slices.Equal(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
	if len(objects) != 1 || objects[0].Valid() || objects[0].Name != "with.dots" {
		t.Errorf("got %v", objects)
	}
	for version, want := range map[string]string{
		"hookgate.dev/v1": `configs/acme.yaml:1: ExtensionPolicy "p": apiVersion: Unsupported value: "hookgate.dev/v1": supported values: "hookgate.dev/v1alpha1"`,
	} {
		_, problems := decodeAll(t, "apiVersion: "+version+"\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec: {targetRef: {name: a}, order: 1}\n")
		if !slices.Equal(problems, []string{want}) {
			t.Errorf("got %q, want %q", problems, want)
		}
	}
}
