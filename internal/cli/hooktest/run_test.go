// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

var (
	hooks    = catalog.New()
	mandated = codec.New(hooks)
)

const head = "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChainTest\nmetadata: {name: t}\nspec:\n  chain: c\n"

// fileOf returns a manifest of that name.
func fileOf(t *testing.T, name, content string) *manifest.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := manifest.ReadFile(&files.Reader{}, path)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// ran returns the problems of the one case of a test, whose chain answers with JSON, or with an error.
func ran(t *testing.T, test, answer string, failure error) []string {
	t.Helper()
	tests, err := ParseChainTests(fileOf(t, "t.yaml", head+test), hooks, false)
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{
		Hooks: hooks, Codec: mandated, Read: func(path string) ([]byte, error) { return nil, errors.New("no " + path) },
		Call: func(_ context.Context, h *catalog.Hook, _ *Given, _ proto.Message) (proto.Message, error) {
			m := h.Response.New().Interface()
			if failure == nil {
				err := mandated.Decode([]byte(answer), m)
				return m, err
			}
			return nil, failure
		},
	}
	h, _ := hooks.ByName(tests[0].Spec.Hook)
	results := r.Run(t.Context(), h, tests[0])
	if len(results) != 1 || results[0].Test != "t" || results[0].Case != "one" || results[0].Place.Line != 8 {
		t.Fatalf("got %+v", results)
	}
	return results[0].Problems
}

func TestRun(t *testing.T) {
	const (
		update  = "  hook: CanUpdateMachine\n  cases:\n  - name: one\n    given: {request: {current: {machine: {kind: Machine, spec: {version: v1, a~/b: {c: 1}}}}, desired: {machine: {spec: {version: v2}}}}}\n    want: "
		patched = `{"status":"Success","machinePatch":{"patchType":"JSONMergePatch","patch":"eyJzcGVjIjp7InZlcnNpb24iOiJ2MiJ9fQ=="}}`
		plan    = "  hook: GenerateUpgradePlan\n  cases:\n  - name: one\n    want: "
		waiting = `{"status":"Success","message":"wait","retryAfterSeconds":5}`
		before  = "  hook: BeforeClusterCreate\n  cases:\n  - name: one\n    want: "
		whole   = `apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {name: machine, namespace: default, labels: {cluster.x-k8s.io/cluster-name: cluster}}`
	)
	for name, tc := range map[string]struct {
		test, answer string
		err          error
		want         []string
	}{
		"ObjectAfter":  {update + `{objects: [{name: machine, object: {` + whole + `, spec: {clusterName: cluster, version: v2, a~/b: {c: 1}}}}]}`, patched, nil, nil},
		"OtherObject":  {update + `{objects: [{name: machine, object: {` + whole + `, spec: {clusterName: cluster, version: v3, a~/b: {c: 2.0}, d: []}}}]}`, patched, nil, []string{`object machine /spec/a~0~1b/c: got 1, want 2.0`, `object machine /spec/d: got nothing, want []`, `object machine /spec/version: got "v2", want "v3"`}},
		"NoSuchObject": {update + `{objects: [{uid: x, object: {}}]}`, patched, nil, []string{"object x: the request has no such object"}},
		"BadPatch":     {update + `{objects: [{name: machine, object: {}}]}`, strings.Replace(patched, "JSONMergePatch", "JSONPatch", 1), nil, []string{"patch of machine: it is not a list of operations"}},
		"Success":      {update + `{}`, patched, nil, nil},
		"Failure":      {plan + `{status: Failure, message: not now}`, `{"status":"Failure","message":"not now"}`, nil, nil},
		"Error":        {plan + `{error: not now}`, "", errors.New("not now"), nil},
		"OtherError":   {plan + `{error: never}`, "", errors.New("not now"), []string{"error: not now", "want error: never"}},
		"OtherFailure": {plan + `{status: Failure, message: never}`, `{"status":"Failure","message":"not now"}`, nil, []string{`message: got "not now", want "never"`}},
		"NoFailure":    {plan + `{status: Failure}`, `{"status":"Success"}`, nil, []string{`status: got Success, want Failure`}},
		"NoError":      {plan + `{error: never}`, `{"status":"Success"}`, nil, []string{"there is no error", "want error: never"}},
		"Unwanted":     {plan + `{}`, "", errors.New("not now"), []string{"error: not now"}},
		"Held":         {before + `{message: wait, retryAfterSeconds: 5}`, waiting, nil, nil},
		"UnwantedHold": {before + `{}`, waiting, nil, []string{`message: got "wait", want ""`, "retryAfterSeconds: got 5, want 0"}},
		"Excluded":     {before + `{}`, "", &Excluded{"other labels"}, []string{"it is excluded: other labels"}},
		"Response":     {plan + `{response: {controlPlaneUpgrades: [{version: v1.35.0}]}}`, `{"status":"Success","controlPlaneUpgrades":[{"version":"v1.35.0"}]}`, nil, nil},
		"OtherResponse": {
			plan + `{response: {controlPlaneUpgrades: [], other: 1}}`, `{"status":"Success","controlPlaneUpgrades":[{"version":"v1.35.0"}]}`, nil,
			[]string{`controlPlaneUpgrades: got [{"version":"v1.35.0"}], want []`, "the answer has no other"},
		},
		"NoFile":        {"  hook: GenerateUpgradePlan\n  cases:\n  - {name: one, given: {requestFile: r.yaml}}\n", "", nil, []string{"no r.yaml"}},
		"NotRequest":    {"  hook: GenerateUpgradePlan\n  cases:\n  - {name: one, given: {request: {kind: X}}}\n", "", nil, []string{"the request cannot be read as GenerateUpgradePlanRequest: kind: want GenerateUpgradePlanRequest, got X"}},
		"UnknownMember": {"  hook: GeneratePatches\n  cases:\n  - {name: one, given: {request: {items: [{object: {}, holder: {}}]}}}\n", "", nil, []string{`given.request: GeneratePatchesRequestItem has no member "holder"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ran(t, tc.test, tc.answer, tc.err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// What a case does not say of its request is filled in.
func TestComplete(t *testing.T) {
	const (
		cluster = `"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"cluster","namespace":"default"},"spec":{}}`
		live    = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"cluster"},"name":"machine","namespace":"default"},"spec":{"clusterName":"cluster","version":"v1"`
		held    = `"holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","fieldPath":"spec.infrastructureRef","kind":"Cluster","name":"cluster","namespace":"default"}`
	)
	for name, tc := range map[string]struct{ hook, given, want string }{
		"Nothing": {"BeforeClusterUpgrade", ``, `{` + cluster + `,"fromKubernetesVersion":"v1.35.0","toKubernetesVersion":"v1.36.0"}`},
		"Merged":  {"BeforeClusterDelete", `{"cluster":{"metadata":{"labels":{"a":"b"}},"spec":null}}`, `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"labels":{"a":"b"},"name":"cluster","namespace":"default"}}}`},
		"Variables": {"GeneratePatches", `{"variables":[{"name":"a","value":1},{"name":"builtin","value":{"cluster":{"name":"c"}}}]}`,
			`{"variables":[{"name":"a","value":1},{"name":"builtin","value":{"cluster":{"name":"c","namespace":"default"}}}]}`},
		"Builtin": {"GeneratePatches", `{"variables":[{"name":"a","value":1}]}`, `{"variables":[{"name":"a","value":1},{"name":"builtin","value":{"cluster":{"name":"cluster","namespace":"default"}}}]}`},
		"Items": {"GeneratePatches", `{"variables":[],"items":[{"object":{}},{"uid":"x","object":{}}]}`,
			`{"items":[{` + held + `,"object":{},"uid":"1"},{` + held + `,"object":{},"uid":"x"}],"variables":[{"name":"builtin","value":{"cluster":{"name":"cluster","namespace":"default"}}}]}`},
		"Holders": {"ValidateTopology", `{"items":[{"object":{}}]}`, `{"items":[{` + held + `,"object":{}}],"variables":[{"name":"builtin","value":{"cluster":{"name":"cluster","namespace":"default"}}}]}`},
		"Desired": {"CanUpdateMachine", `{"current":{"machine":{"spec":{"version":"v1"}}},"desired":{"machine":{"spec":{"a":1}}}}`,
			`{"current":{"machine":` + live + `}}},"desired":{"machine":` + strings.Replace(live, `{"clusterName"`, `{"a":1,"clusterName"`, 1) + `}}}}`},
		"Unchanged": {"CanUpdateMachine", `{"current":{"machine":{"spec":{"version":"v1"}}}}`, `{"current":{"machine":` + live + `}}},"desired":{"machine":` + live + `}}}}`},
		"List":      {"BeforeClusterDelete", `[]`, `[]`},
	} {
		h, _ := hooks.ByName(tc.hook)
		got, err := Complete(h, []byte(tc.given))
		if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

// A mistake in a test is an error with its line: a case that is misread would pass for ever.
func TestParse(t *testing.T) {
	const (
		one  = "  hook: GeneratePatches\n  cases:\n  - name: a\n    given: {}\n"
		rule = "apiVersion: hookgate.dev/v1alpha1\nkind: HookRuleTest\nmetadata: {name: t}\nspec:\n"
	)
	for test, want := range map[string]string{
		"  hook: GeneratePatches\n":                                          `4: HandlerChainTest "t": spec.cases: want one at least`,
		"  hook: Discovery\n  cases: [{name: a}]\n":                          `6: HandlerChainTest "t": spec.hook: no hook "Discovery" has chains`,
		"  cases: [{name: a}]\n":                                             `4: HandlerChainTest "t": spec.hook: required`,
		one + "  step: 1\n":                                                  `10: HandlerChainTest "t": unknown field "spec.step"`,
		one + "    wants: {}\n":                                              `10: HandlerChainTest "t": unknown field "spec.cases[0].wants"`,
		one + "    want: {object: []}\n":                                     `10: HandlerChainTest "t": unknown field "spec.cases[0].want.object"`,
		one + "    want: {excluded: true}\n":                                 `8: HandlerChainTest "t": spec.cases[0]: now, params, places, namespaceLabels and excluded are for rules`,
		one + "  - name: a\n    given: {request: {}, requestFile: x}\n":      `10: HandlerChainTest "t": spec.cases[1].name: "a" is the name of another case, too`,
		one + "  - name: b\n    given: {request: {}, requestFile: x}\n":      `11: HandlerChainTest "t": spec.cases[1].given: want one of request and requestFile`,
		one + "  - given: {}\n":                                              `10: HandlerChainTest "t": spec.cases[1].name: required`,
		one + "    want: {objects: [{object: {}}]}":                          `10: HandlerChainTest "t": spec.cases[0].want.objects[0]: want one of uid and name, and the object`,
		one + "    want: {objects: [{uid: '1'}]}":                            `10: HandlerChainTest "t": spec.cases[0].want.objects[0]: want one of uid and name, and the object`,
		one + "    want: {error: x, response: {a: 1}}":                       `10: HandlerChainTest "t": spec.cases[0].want: want one of an answer, an error, and excluded`,
		one + "    want:\n      status: Fail":                                `11: HandlerChainTest "t": spec.cases[0].want.status: want Success or Failure, got "Fail"`,
		one + "---\nkind: HandlerChain\napiVersion: hookgate.dev/v1alpha1\n": `11: HandlerChain: kind: want HandlerChainTest, got HandlerChain`,
		one + "\tx": `10: not YAML`,
	} {
		f := fileOf(t, "t.yaml", head+test)
		if _, err := ParseChainTests(f, hooks, false); err == nil || !strings.Contains(err.Error(), "t.yaml:"+want) {
			t.Errorf("%s: got %v, want %s", fmt.Sprintf("%q", test), err, want)
		}
	}
	for test, want := range map[string]string{
		"  cases: [{name: a}]\n":                                            `4: HookRuleTest "t": spec.rule: required`,
		"  rule: r\n  chain: c\n  cases: [{name: a}]\n":                     `4: HookRuleTest "t": spec: a HookRuleTest must have a rule, and neither a chain nor a hook`,
		"  rule: r\n  cases:\n  - {name: a, given: {now: yesterday}}\n":     `7: HookRuleTest "t": spec.cases[0].given.now: want a time such as 2026-07-04T01:00:00Z, got "yesterday"`,
		"  rule: r\n  cases:\n  - {name: a, given: {places: [{}]}}\n":       `7: HookRuleTest "t": spec.cases[0].given.places[0].name: required`,
		"  rule: r\n  cases: [{name: a, want: {excluded: true, error: x}}]": `6: HookRuleTest "t": spec.cases[0].want: want one of`,
	} {
		if _, err := ParseRuleTests(fileOf(t, "t.yaml", rule+test)); err == nil || !strings.Contains(err.Error(), "t.yaml:"+want) {
			t.Errorf("%s: got %v, want %s", fmt.Sprintf("%q", test), err, want)
		}
	}
}
