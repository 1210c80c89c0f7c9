// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaintest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/codec"
)

var (
	hooks    = catalog.New()
	mandated = codec.New(hooks)
)

const head = "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChainTest\nmetadata: {name: t}\nspec:\n  chain: c\n"

// ran returns the problems of the one case of a test, whose chain answers with JSON, or with an error.
func ran(t *testing.T, test, answer string, failure error) []string {
	t.Helper()
	tests, err := Parse("t.yaml", []byte(head+test), hooks)
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{
		Hooks: hooks, Codec: mandated, Read: func(path string) ([]byte, error) { return nil, errors.New("no " + path) },
		Call: func(_ context.Context, h *catalog.Hook, chain string, _ proto.Message) (proto.Message, error) {
			if chain != "c" {
				t.Errorf("called %s", chain)
			}
			m := h.Response.New().Interface()
			if failure == nil {
				err := mandated.Decode([]byte(answer), m)
				return m, err
			}
			return nil, failure
		},
	}
	results := r.Run(t.Context(), tests[0])
	if len(results) != 1 || results[0].Test != "t" || results[0].Case != "one" {
		t.Fatalf("got %+v", results)
	}
	return results[0].Problems
}

func TestRun(t *testing.T) {
	const (
		update  = "  hook: CanUpdateMachine\n  cases:\n  - name: one\n    request: {current: {machine: {kind: Machine, spec: {version: v1, a~/b: {c: 1}}}}, desired: {machine: {kind: Machine, spec: {version: v2}}}}\n    want: "
		patched = `{"status":"Success","machinePatch":{"patchType":"JSONMergePatch","patch":"eyJzcGVjIjp7InZlcnNpb24iOiJ2MiJ9fQ=="}}`
		plan    = "  hook: GenerateUpgradePlan\n  cases:\n  - name: one\n    request: {cluster: {kind: Cluster}}\n    want: "
	)
	for name, tc := range map[string]struct {
		test, answer string
		err          error
		want         []string
	}{
		"ObjectAfter":  {update + `{objects: [{name: machine, object: {kind: Machine, spec: {version: v2, a~/b: {c: 1}}}}]}`, patched, nil, nil},
		"OtherObject":  {update + `{objects: [{name: machine, object: {kind: Machine, spec: {version: v3, a~/b: {c: 2.0}, d: []}}}]}`, patched, nil, []string{`object machine /spec/a~0~1b/c: got 1, want 2.0`, `object machine /spec/d: got nothing, want []`, `object machine /spec/version: got "v2", want "v3"`}},
		"NoSuchObject": {update + `{objects: [{uid: x, object: {}}]}`, patched, nil, []string{"object x: the request has no such object"}},
		"BadPatch":     {update + `{objects: [{name: machine, object: {}}]}`, strings.Replace(patched, "JSONMergePatch", "JSONPatch", 1), nil, []string{"patch of machine: it is not a list of operations"}},
		"Success":      {update + `{}`, patched, nil, nil},
		"Failure":      {plan + `{failure: not now}`, `{"status":"Failure","message":"not now"}`, nil, nil},
		"Error":        {plan + `{failure: not now}`, "", errors.New("not now"), nil},
		"OtherFailure": {plan + `{failure: never}`, `{"status":"Failure","message":"not now"}`, nil, []string{"it fails: not now", `want the failure "never"`}},
		"NoFailure":    {plan + `{failure: never}`, `{"status":"Success"}`, nil, []string{`it succeeds, want the failure "never"`}},
		"Unwanted":     {plan + `{}`, "", errors.New("not now"), []string{"it fails: not now"}},
		"Response":     {plan + `{response: {controlPlaneUpgrades: [{version: v1.35.0}]}}`, `{"status":"Success","controlPlaneUpgrades":[{"version":"v1.35.0"}]}`, nil, nil},
		"OtherResponse": {
			plan + `{response: {controlPlaneUpgrades: [], other: 1}}`, `{"status":"Success","controlPlaneUpgrades":[{"version":"v1.35.0"}]}`, nil,
			[]string{`controlPlaneUpgrades: got [{"version":"v1.35.0"}], want []`, "the answer has no other"},
		},
		"NoFile":     {"  hook: GenerateUpgradePlan\n  cases:\n  - {name: one, requestFile: r.yaml}\n", "", nil, []string{"no r.yaml"}},
		"NotRequest": {"  hook: GenerateUpgradePlan\n  cases:\n  - {name: one, request: {kind: X}}\n", "", nil, []string{"the request is no GenerateUpgradePlanRequest: kind: want GenerateUpgradePlanRequest, got X"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ran(t, tc.test, tc.answer, tc.err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A mistake in a test is an error with its line: a case that is misread would pass for ever.
func TestParse(t *testing.T) {
	const one = "  hook: GeneratePatches\n  cases:\n  - name: a\n    request: {}\n"
	for test, want := range map[string]string{
		"  hook: GeneratePatches\n":                                          `t.yaml: HandlerChainTest "t": spec.cases: want one at least`,
		"  hook: Discovery\n":                                                `t.yaml: HandlerChainTest "t": spec.hook: no hook "Discovery" has chains`,
		"  cases: []\n":                                                      `t.yaml: HandlerChainTest "t": spec.hook: required`,
		one + "  step: 1\n":                                                  `t.yaml:10: HandlerChainTest "t": unknown field "spec.step"`,
		one + "    wants: {}\n":                                              `t.yaml:10: HandlerChainTest "t": unknown field "spec.cases[0].wants"`,
		one + "    want: {object: []}\n":                                     `t.yaml:10: HandlerChainTest "t": unknown field "spec.cases[0].want.object"`,
		one + "    requestFile: x\n":                                         `t.yaml: HandlerChainTest "t": spec.cases[0]: want one of request and requestFile`,
		one + "  - name: a\n    request: {}\n":                               `t.yaml: HandlerChainTest "t": spec.cases[1].name: "a" is the name of another case, too`,
		one + "  - request: {}\n":                                            `t.yaml: HandlerChainTest "t": spec.cases[1].name: required`,
		one + "    want: {objects: [{object: {}}]}":                          `t.yaml: HandlerChainTest "t": spec.cases[0].want.objects[0]: want one of uid and name, and the object`,
		one + "    want: {objects: [{uid: '1'}]}":                            `t.yaml: HandlerChainTest "t": spec.cases[0].want.objects[0]: want one of uid and name, and the object`,
		one + "    want: {failure: x, response: {a: 1}}":                     `t.yaml: HandlerChainTest "t": spec.cases[0].want: a failure has neither objects nor a response`,
		one + "---\nkind: HandlerChain\napiVersion: hookgate.dev/v1alpha1\n": `t.yaml:11: HandlerChain: kind: want HandlerChainTest, got HandlerChain`,
		one + "\tx": `t.yaml:10: not YAML`,
	} {
		if _, err := Parse("t.yaml", []byte(head+test), hooks); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", fmt.Sprintf("%q", test), err, want)
		}
	}
}
