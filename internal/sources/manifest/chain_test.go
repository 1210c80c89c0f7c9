// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/registry"
)

// chainManifest is a chain of that name with that spec, in YAML's flow style.
func chainManifest(name, spec string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata:\n  name: " + name + "\nspec: " + spec + "\n"
}

func TestHandlerChainCRDIsValid(t *testing.T) {
	isValid(t, readCRD(t, "handlerchains"), "Hook", "Ready", "Reason", "Steps", "Message", "Age")
}

// The schema and the directory source refuse the same chains, each with a text that names the field. Rules that a
// schema cannot express are left to the source and the controller.
func TestHandlerChainRules(t *testing.T) {
	schema, words := readCRD(t, "handlerchains"), newDecoder(t)
	steps := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("{handler: h%d.x}", i)
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	settings := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("s%d: v", i)
		}
		return "{hook: GeneratePatches, steps: [{handler: a.x, settings: {" + strings.Join(list, ", ") + "}}]}"
	}
	allow := func(paths ...string) string {
		return "{hook: CanUpdateMachine, steps: [{handler: a.x, allow: ['" + strings.Join(paths, "', '") + "']}]}"
	}
	paths := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("/machine/%d", i)
		}
		return list
	}
	label := strings.Repeat("x", 63)
	pointer := "/" + strings.Repeat("x", 255)
	for reason, tt := range map[string]struct{ spec, schema, source string }{
		"every member":                              {`{hook: CanUpdateMachine, onPartialCoverage: Block, steps: [{handler: a.x, settings: {a: b}, optional: false, allow: [/machine/spec, /bootstrapConfig/spec/files]}]}`, "", ""},
		"a step that may be missing":                {`{hook: GeneratePatches, steps: [{handler: a.x}, {handler: b.x, optional: true}]}`, "", ""},
		"no hook":                                   {`{steps: [{handler: a.x}]}`, "spec.hook: Required value", "spec.hook: Required value"},
		"a hook that does not exist":                {`{hook: BeforeCoffee, steps: [{handler: a.x}]}`, "", `spec.hook: Unsupported value: "BeforeCoffee"`},
		"no steps":                                  {`{hook: GeneratePatches, steps: []}`, "spec.steps", "spec.steps: Required value"},
		"64 steps":                                  {`{hook: GeneratePatches, steps: ` + steps(64) + `}`, "", ""},
		"65 steps":                                  {`{hook: GeneratePatches, steps: ` + steps(65) + `}`, "spec.steps: Too many", "spec.steps: Too many: 65"},
		"a handler twice":                           {`{hook: GeneratePatches, steps: [{handler: a.x}, {handler: a.x}]}`, "spec.steps[1]: Duplicate value", "spec.steps[1].handler: Duplicate value"},
		"a step without a handler":                  {`{hook: GeneratePatches, steps: [{optional: true}]}`, "spec.steps[0].handler: Required value", "spec.steps[0].handler: Required value"},
		"a chain as a step":                         {`{hook: GeneratePatches, steps: [{handler: others}]}`, "must be the registered name of a handler", "must be the registered name of a handler"},
		"a name in upper case":                      {`{hook: GeneratePatches, steps: [{handler: A.x}]}`, "must be the registered name of a handler", "must be the registered name of a handler"},
		"the longest name of a step":                {`{hook: GeneratePatches, steps: [{handler: ` + label + `.` + label + `}]}`, "", ""},
		"a longer name of a step":                   {`{hook: GeneratePatches, steps: [{handler: ` + label + `.` + label + `x}]}`, "spec.steps[0].handler: Too long", "spec.steps[0].handler: Invalid value"},
		"256 settings":                              {settings(256), "", ""},
		"257 settings":                              {settings(257), "spec.steps[0].settings", "spec.steps[0].settings: Too many: 257"},
		"a setting that is no text":                 {`{hook: GeneratePatches, steps: [{handler: a.x, settings: {a: 1}}]}`, "spec.steps[0].settings.a: Invalid value", "Invalid type: number, must be a string"},
		"optional in place":                         {`{hook: UpdateMachine, steps: [{handler: a.x, optional: true}]}`, "cannot be optional", "cannot be optional"},
		"coverage of another hook":                  {`{hook: UpdateMachine, onPartialCoverage: Replace, steps: [{handler: a.x}]}`, "onPartialCoverage is for the hooks", "onPartialCoverage is for the hooks"},
		"coverage that is none":                     {`{hook: CanUpdateMachineSet, onPartialCoverage: Wait, steps: [{handler: a.x}]}`, "spec.onPartialCoverage: Unsupported value", `spec.onPartialCoverage: Unsupported value: "Wait"`},
		"a hold that stops":                         {`{hook: BeforeClusterUpgrade, steps: [{handler: a.x, onHold: Stop}, {handler: b.x, onHold: Continue}]}`, "", ""},
		"a hold of another hook":                    {`{hook: UpdateMachine, steps: [{handler: a.x, onHold: Stop}]}`, "onHold is for steps of lifecycle hooks", "onHold is for steps of lifecycle hooks"},
		"a hold that is none":                       {`{hook: BeforeClusterUpgrade, steps: [{handler: a.x, onHold: Wait}]}`, "spec.steps[0].onHold: Unsupported value", `spec.steps[0].onHold: Unsupported value: "Wait"`},
		"paths of another hook":                     {`{hook: UpdateMachine, steps: [{handler: a.x, allow: [/machine/spec]}]}`, "allow is for steps of the hooks", "allow is for steps of the hooks"},
		"64 paths":                                  {allow(paths(64)...), "", ""},
		"65 paths":                                  {allow(paths(65)...), "spec.steps[0].allow: Too many", "spec.steps[0].allow: Too many: 65"},
		"a path twice":                              {allow("/machine/spec", "/machine/spec"), "spec.steps[0].allow[1]: Duplicate value", "spec.steps[0].allow[1]: Duplicate value"},
		"the longest path":                          {allow(pointer), "", ""},
		"and a longer one":                          {allow(pointer + "x"), "spec.steps[0].allow[0]: Too long", "spec.steps[0].allow[0]: Too long"},
		"a path that is no pointer":                 {allow("machine"), "spec.steps[0].allow[0]", "spec.steps[0].allow[0]: Invalid value"},
		"a path to the whole object, which is none": {allow("/"), "spec.steps[0].allow[0]", "spec.steps[0].allow[0]: Invalid value"},
		"a path that begins with two":               {allow("//machine"), "spec.steps[0].allow[0]", "spec.steps[0].allow[0]: Invalid value"},
		"a member that does not exist":              {`{hook: GeneratePatches, parallel: true, steps: [{handler: a.x}]}`, "unknown field spec.parallel", `unknown field "spec.parallel"`},
	} {
		t.Run(reason, func(t *testing.T) {
			agree(t, schema, words, reason, chainManifest("c", tt.spec), `HandlerChain "c"`, tt.schema, tt.source)
		})
	}
	const good = "{hook: GeneratePatches, steps: [{handler: a.x}]}"
	agree(t, schema, words, "the longest name", chainManifest(label, good), "", "", "")
	for _, name := range []string{label + "x", "a.b"} {
		_, problems := decodeAll(t, chainManifest(name, good))
		if len(problems) != 1 || !strings.Contains(problems[0], "metadata.name: Invalid value") {
			t.Errorf("%s: %q", name, problems)
		}
		object := map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "HandlerChain", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"hook": "GeneratePatches", "steps": []any{map[string]any{"handler": "a.x"}}},
		}
		says(t, name, schema.Problems(t, object, nil), "metadata.name must be a DNS-1123 label")
	}
}

// A chain is read with its content, and each mistake with its line.
func TestDecodeHandlerChain(t *testing.T) {
	manifest := `# a comment
apiVersion: hookgate.dev/v1alpha1
kind: HandlerChain
metadata: {name: platform-patches, namespace: here}
spec:
  hook: GeneratePatches
  steps:
  - handler: node-image.acme
  - handler: proxy.acme
    settings: {mode: strict}
    optional: true
status: {conditions: [{type: Ready}]}
`
	objects, problems := decodeAll(t, manifest)
	want := registry.Chain{
		Name: "platform-patches", Hook: hook.GroupHook{Group: hook.Group, Hook: "GeneratePatches"},
		Steps: []registry.ChainStep{{Handler: "node-image.acme"}, {Handler: "proxy.acme", Settings: map[string]string{"mode": "strict"}, Optional: true}},
	}
	if len(objects) != 1 || !cmp.Equal(objects[0].Compiled, any(want)) {
		t.Fatalf("got %+v", objects)
	}
	if want := []string{`configs/acme.yaml:4: HandlerChain "platform-patches": metadata.namespace: HandlerChain belongs to no namespace: the ExtensionConfigs of its steps choose namespaces`}; !slices.Equal(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
	wrong := strings.NewReplacer(", namespace: here", "", "GeneratePatches", "GeneratePatchs", "proxy.acme", "proxy", "strict", "1").Replace(manifest)
	objects, problems = decodeAll(t, wrong)
	if want := []string{`configs/acme.yaml:7: HandlerChain "platform-patches": spec.steps.settings: Invalid type: number, must be a string; put it in quotes`}; !slices.Equal(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
	if len(objects) != 1 || objects[0].Valid() {
		t.Errorf("got %+v", objects)
	}
	_, problems = decodeAll(t, strings.Replace(wrong, "{mode: 1}", "{mode: x}", 1))
	if want := []string{
		`configs/acme.yaml:6: HandlerChain "platform-patches": spec.hook: Invalid value: "GeneratePatchs": not a hook that can have a chain: did you mean "GeneratePatches"?`,
		`configs/acme.yaml:9: HandlerChain "platform-patches": spec.steps[1].handler: Invalid value: "proxy": must be the registered name of a handler: <handler>.<ExtensionConfig>, two DNS-1123 labels; a chain has no chain as a step`,
	}; !slices.Equal(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
}

// A chain whose manifest is not valid any more keeps its last valid state, and one that no manifest has is gone.
func TestInventoryKeepsChains(t *testing.T) {
	words := newDecoder(t)
	file := func(spec string) []File { return []File{{file: "c.yaml", content: []byte(chainManifest("c", spec))}} }
	first, problems := (&Inventory{}).Next(file("{hook: GeneratePatches, steps: [{handler: a.x}]}"), words)
	if len(problems) > 0 || first.Of(handlerchain.Kind)["c"].Compiled == nil || len(kinds.Mistakes(first.Items(handlerchain.Kind))) > 0 {
		t.Fatalf("got %+v, %v", first.Of(handlerchain.Kind), problems)
	}
	const kept = "spec.steps: Required value: must have the handlers that the chain consists of; the last valid state stays in use"
	second, problems := first.Next(file("{hook: GeneratePatches}"), words)
	if len(problems) != 1 || problems[0].Effect != "the last valid state stays in use" || !cmp.Equal(second.Of(handlerchain.Kind)["c"].Compiled, first.Of(handlerchain.Kind)["c"].Compiled) || kinds.Mistakes(second.Items(handlerchain.Kind))["c"] != kept {
		t.Errorf("got %+v, %q, %v", second.Of(handlerchain.Kind), kinds.Mistakes(second.Items(handlerchain.Kind)), problems)
	}
	third, problems := second.Next(nil, words)
	if len(third.Of(handlerchain.Kind))+len(kinds.Mistakes(third.Items(handlerchain.Kind)))+len(problems) > 0 {
		t.Errorf("got %+v, %q, %v", third.Of(handlerchain.Kind), kinds.Mistakes(third.Items(handlerchain.Kind)), problems)
	}
	bad, _ := (&Inventory{}).Next(file("{hook: GeneratePatches}"), words)
	if len(bad.Of(handlerchain.Kind)) > 0 || !strings.HasSuffix(kinds.Mistakes(bad.Items(handlerchain.Kind))["c"], "; it is not used, and the gateway refuses every call that the object may apply to (NotReady)") {
		t.Errorf("got %+v, %q", bad.Of(handlerchain.Kind), kinds.Mistakes(bad.Items(handlerchain.Kind)))
	}
}
