// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	library "github.com/evanphx/json-patch/v5"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// update is a request to update a Machine whose bootstrap config has another spec.
func update(current, desired string) *hooksv1alpha1.CanUpdateMachineRequest {
	objects := func(spec string) *hooksv1alpha1.CanUpdateMachineRequestObjects {
		return &hooksv1alpha1.CanUpdateMachineRequestObjects{
			Machine:         &hooksv1alpha1.RawExtension{Raw: []byte(`{"spec":{"version":"v1"}}`)},
			BootstrapConfig: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"name":` + fmt.Sprintf("%q", spec) + `},"spec":` + spec + `}`)},
		}
	}
	return &hooksv1alpha1.CanUpdateMachineRequest{Current: objects(current), Desired: objects(desired)}
}

const files = `
hook: CanUpdateMachine
allow:
- {path: /bootstrapConfig/spec/files, affectsAvailability: false}
- {path: /bootstrapConfig/spec/cluster/a~1b}
- {path: /bootstrapConfig/spec/cluster/c, affectsAvailability: true}
- {path: /infrastructureMachine/spec}
`

// The answer has one operation for each path that differs, with the objects above it that come or go with it.
func TestInPlace(t *testing.T) {
	for reason, tt := range map[string]struct {
		current, desired string
		patch            string
		affects          string
	}{
		"nothing differs":                       {`{"files":[1]}`, `{"files": [1]}`, ``, `absent`},
		"only what may not change":              {`{"x":1}`, `{"x":2}`, ``, `absent`},
		"a list changes as a whole":             {`{"files":[1],"x":1}`, `{"files":[1,null],"x":2}`, `[{"op":"add","path":"/spec/files","value":[1,null]}]`, `false`},
		"null is a value":                       {`{}`, `{"files":null}`, `[{"op":"add","path":"/spec/files","value":null}]`, `false`},
		"what goes":                             {`{"files":[1]}`, `{}`, `[{"op":"remove","path":"/spec/files"}]`, `false`},
		"availability, if the rule is silent":   {`{}`, `{"files":[1],"cluster":{"a/b":1}}`, `[{"op":"add","path":"/spec/files","value":[1]},{"op":"add","path":"/spec/cluster","value":{"a/b":1}}]`, `true`},
		"the objects above come, with no other": {`{}`, `{"cluster":{"a/b":1,"c":2,"x":3}}`, `[{"op":"add","path":"/spec/cluster","value":{"a/b":1}},{"op":"add","path":"/spec/cluster/c","value":2}]`, `true`},
		"the objects above go with the last":    {`{"cluster":{"a/b":1,"c":2}}`, `{}`, `[{"op":"remove","path":"/spec/cluster/a~1b"},{"op":"remove","path":"/spec/cluster"}]`, `true`},
		"they stay if they have more":           {`{"cluster":{"c":2,"x":3}}`, `{}`, `[{"op":"remove","path":"/spec/cluster/c"}]`, `true`},
		"they stay if they are wanted":          {`{"cluster":{"c":2}}`, `{"cluster":{}}`, `[{"op":"remove","path":"/spec/cluster/c"}]`, `true`},
		"what is above is no object":            {`{"cluster":1}`, `{"cluster":{"c":1}}`, ``, `absent`},
		"an index leads nowhere":                {`{"cluster":[1]}`, `{"cluster":{"c":1}}`, ``, `absent`},
	} {
		got, err := answer(t, files, update(tt.current, tt.desired))
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		of := got.(*hooksv1alpha1.CanUpdateMachineResponse)
		affects := "absent"
		if of.AffectsAvailability != nil {
			affects = strconv.FormatBool(of.GetAffectsAvailability())
		}
		if patch := string(of.GetBootstrapConfigPatch().GetPatch()); patch != tt.patch || affects != tt.affects {
			t.Errorf("%s: got  %s, affectsAvailability %s\nwant %s, %s", reason, patch, affects, tt.patch, tt.affects)
		}
		if of.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS || of.MachinePatch != nil || of.InfrastructureMachinePatch != nil {
			t.Errorf("%s: got %v", reason, of)
		}
	}
}

func TestInPlaceMistakes(t *testing.T) {
	const set = "hook: CanUpdateMachineSet\n"
	for spec, want := range map[string]string{
		"hook: CanUpdateMachine": `spec.allow: Required value: must have the paths that may change in place`,
		"hook: CanUpdateMachine\naction: Audit\nallow: [{path: /machine/spec}]":                             `spec.action: Forbidden: rules of CanUpdateMachine cannot have this action`,
		"hook: CanUpdateMachine\nhold: [{if: 'true', message: a}]\nallow: [{path: /machine/spec}]":          `spec.hold: Forbidden: rules of CanUpdateMachine cannot have hold, fail`,
		"hook: UpdateMachine\nallow: [{path: /machine/spec}]":                                               `spec.hook: Invalid value: "UpdateMachine": a rule says what may change in place (CanUpdateMachine, CanUpdateMachineSet), but cannot make the change: a HookJob can`,
		"hook: BeforeClusterCreate\nfail: [{if: 'true', message: '\"a\"'}]\nallow: [{path: /machine/spec}]": `spec.allow: Forbidden: rules of BeforeClusterCreate cannot have allow`,
		set + "allow: [{path: /machine/spec/version}]":                                                      `spec.allow[0].path: Invalid value: "/machine/spec/version": must be one of /machineSet/spec/template/spec, /infrastructureMachineTemplate/spec/template/spec, /bootstrapConfigTemplate/spec/template/spec, or a path below one of them: Cluster API accepts no other changes from CanUpdateMachineSet`,
		set + "allow: [{path: /machineSet/spec/template/specs}]":                                            `spec.allow[0].path: Invalid value: "/machineSet/spec/template/specs": must be one of`,
		set + "allow: [{path: /machineSet/spec/template/spec/}]":                                            `spec.allow[0].path: Invalid value: "/machineSet/spec/template/spec/": must have no empty name`,
		"hook: CanUpdateMachine\nallow: [{path: ''}]":                                                       `spec.allow[0].path: Required value: must be a JSON pointer, such as /machine/spec/version`,
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec/a}, {path: /machine/spec/a}]":                 `spec.allow[1].path: Duplicate value: "/machine/spec/a"`,
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec/a}, {path: /machine/spec}]":                   `spec.allow[1].path: Invalid value: "/machine/spec": overlaps with /machine/spec/a: leave out the longer path`,
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec/a}, {path: /machine/spec/a/b}]":               `spec.allow[1].path: Invalid value: "/machine/spec/a/b": overlaps with /machine/spec/a: leave out the longer path`,
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec/" + strings.Repeat("a", 256) + "}]":           `spec.allow[0].path: Too long: may not be more than 256 bytes`,
	} {
		if _, mistakes := compile(t, spec); !strings.HasPrefix(mistakes, want) || strings.Contains(mistakes, "\n") {
			t.Errorf("%s\ngot  %s\nwant %s", spec, mistakes, want)
		}
	}
	for _, spec := range []string{
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec/a}, {path: /machine/spec/ab}, {path: /bootstrapConfig/spec}]",
		set + "allow: [{path: /machineSet/spec/template/spec/version}]",
	} {
		if _, mistakes := compile(t, spec); mistakes != "" {
			t.Errorf("%s\ngot %s", spec, mistakes)
		}
	}
}

// What Cluster API's library makes of the current objects is what is desired where the rule allows it, and as before
// elsewhere.
func TestInPlaceChangesWhatIsAllowed(t *testing.T) {
	rules, changed := compiler(t), 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		req := &hooksv1alpha1.CanUpdateMachineSetRequest{Current: randomObjects(r), Desired: randomObjects(r)}
		allow := randomPaths(r)
		rule := &v1alpha1.HookRule{Spec: v1alpha1.HookRuleSpec{Hook: "CanUpdateMachineSet"}}
		rule.Name = "r"
		for _, path := range allow {
			rule.Spec.Allow = append(rule.Spec.Allow, v1alpha1.HookRuleAllow{Path: path})
		}
		reg, mistakes := rules.Compile(rule)
		if len(mistakes) > 0 {
			t.Fatalf("seed %d: %v", seed, mistakes)
		}
		got, err := reg.InProcess.Answer(t.Context(), proto.Clone(req), policy.Guard{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// A chain refuses a step that changes what it is not allowed.
		if err := handlerchain.NewInPlace(req, jsonpatch.Guard{}).Add(got, allow); err != nil {
			t.Fatalf("seed %d: %v\nallowed: %v\nanswer: %v", seed, err, allow, got)
		}
		of := got.(*hooksv1alpha1.CanUpdateMachineSetResponse)
		for object, o := range map[string]struct {
			current, desired *hooksv1alpha1.RawExtension
			patch            *hooksv1alpha1.Patch
		}{
			"/machineSet/":                    {req.Current.MachineSet, req.Desired.MachineSet, of.MachineSetPatch},
			"/infrastructureMachineTemplate/": {req.Current.InfrastructureMachineTemplate, req.Desired.InfrastructureMachineTemplate, of.InfrastructureMachineTemplatePatch},
		} {
			after := o.current.GetRaw()
			if o.patch != nil {
				changed++
				operations, err := library.DecodePatch(o.patch.GetPatch())
				if err == nil {
					after, err = operations.Apply(after)
				}
				if err != nil {
					t.Fatalf("seed %d: %v of %s", seed, err, o.patch.GetPatch())
				}
			}
			for _, path := range allow {
				inside, ok := strings.CutPrefix(path, object)
				if !ok {
					continue
				}
				was, blocked := valueAt(t, o.current.GetRaw(), inside)
				want, _ := valueAt(t, o.desired.GetRaw(), inside)
				if blocked || inside == "spec/template/spec" && want == "" {
					want = was
				}
				if now, _ := valueAt(t, after, inside); now != want {
					t.Fatalf("seed %d: %s is %s, want %s", seed, path, now, want)
				}
			}
		}
	}
	if changed < 2000 {
		t.Errorf("only %d objects changed", changed)
	}
}

// valueAt returns the JSON of the value at a path, or nothing if it does not exist. It is blocked if the path leads
// through what is no object.
func valueAt(t *testing.T, text []byte, path string) (value string, blocked bool) {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return "", true
		}
		if v, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !ok {
			return "", false
		}
	}
	written, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(written), false
}

func randomObjects(r *rand.Rand) *hooksv1alpha1.CanUpdateMachineSetRequestObjects {
	object := func() *hooksv1alpha1.RawExtension {
		whole := map[string]any{"metadata": map[string]any{"name": r.IntN(3)}, "spec": map[string]any{"replicas": r.IntN(3), "template": map[string]any{}}}
		if r.IntN(10) > 0 {
			whole["spec"].(map[string]any)["template"].(map[string]any)["spec"] = randomValue(r, 0)
		}
		text, _ := json.Marshal(whole)
		return &hooksv1alpha1.RawExtension{Raw: text}
	}
	return &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: object(), InfrastructureMachineTemplate: object()}
}

// names are members of random objects.
var names = []string{"a", "b", "c/d", "e~f"}

// randomValue returns an object, or further down mostly one.
func randomValue(r *rand.Rand, level int) any {
	if level > 0 && (level > 3 || r.IntN(4) == 0) {
		return []any{1, "x", nil, []any{1, map[string]any{"n": nil}}, true}[r.IntN(5)]
	}
	object := map[string]any{}
	for _, name := range names {
		if r.IntN(2) == 0 {
			object[name] = randomValue(r, level+1)
		}
	}
	return object
}

// randomPaths returns paths none of which is within another.
func randomPaths(r *rand.Rand) []string {
	var found []string
	for range 1 + r.IntN(6) {
		parts := []string{[]string{"/machineSet", "/infrastructureMachineTemplate"}[r.IntN(2)], "spec", "template", "spec"}
		for range r.IntN(4) {
			parts = append(parts, strings.NewReplacer("~", "~0", "/", "~1").Replace(names[r.IntN(len(names))]))
		}
		path := strings.Join(parts, "/")
		if !slices.ContainsFunc(found, func(other string) bool {
			return strings.HasPrefix(path+"/", other+"/") || strings.HasPrefix(other+"/", path+"/")
		}) {
			found = append(found, path)
		}
	}
	return found
}
