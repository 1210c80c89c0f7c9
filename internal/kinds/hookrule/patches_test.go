// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// template is an item of a request: its holder is kind at path.
func template(uid, kind, path, object string, variables ...string) *hooksv1alpha1.GeneratePatchesRequestItem {
	return &hooksv1alpha1.GeneratePatchesRequestItem{
		Uid:             uid,
		HolderReference: &hooksv1alpha1.HolderReference{Kind: kind, Namespace: "n", Name: "c", FieldPath: path},
		Object:          &hooksv1alpha1.RawExtension{Raw: []byte(object)}, Variables: values(variables...),
	}
}

// values are variables: names and JSON in turn.
func values(of ...string) []*hooksv1alpha1.Variable {
	var all []*hooksv1alpha1.Variable
	for i := 0; i < len(of); i += 2 {
		all = append(all, &hooksv1alpha1.Variable{Name: of[i], Value: &hooksv1alpha1.JSON{Raw: []byte(of[i+1])}})
	}
	return all
}

const (
	cloudCluster = `{"apiVersion":"infra/v1","kind":"CloudClusterTemplate","spec":{"template":{"spec":{"region":"a"}}}}`
	cloudMachine = `{"apiVersion":"infra/v1","kind":"CloudMachineTemplate","spec":{"template":{"spec":{"disks":[{"id":9007199254740993}]}}}}`
	inSpec       = "spec.template.spec.infrastructureRef"
	ofCluster    = "spec.infrastructureRef"
)

func topology() *hooksv1alpha1.GeneratePatchesRequest {
	worker := func(uid, class string) *hooksv1alpha1.GeneratePatchesRequestItem {
		return template(uid, "MachineDeployment", inSpec, cloudMachine,
			"builtin", fmt.Sprintf(`{"machineDeployment":{"class":%q,"replicas":3}}`, class), "size", `"large"`)
	}
	return &hooksv1alpha1.GeneratePatchesRequest{
		Settings: map[string]string{"zone": "z1"},
		Variables: values("size", `"small"`, "quota", `18014398509481985`, "image", `{"tag":"v1"}`,
			"builtin", `{"cluster":{"name":"c","namespace":"n"},"machineDeployment":{"topologyName":"t"}}`),
		Items: []*hooksv1alpha1.GeneratePatchesRequestItem{
			template("0", "Cluster", ofCluster, cloudCluster),
			template("1", "Control", "spec.machineTemplate.spec.infrastructureRef", cloudMachine),
			worker("2", "default-worker"), worker("3", "gpu"),
		},
	}
}

// patched returns the answer of a rule, one line for each item.
func patched(t *testing.T, spec string, request *hooksv1alpha1.GeneratePatchesRequest) (string, error) {
	t.Helper()
	m, err := answer(t, "hook: GeneratePatches\npatches:\n"+spec, request)
	if err != nil {
		return "", err
	}
	response, _ := m.(*hooksv1alpha1.GeneratePatchesResponse)
	if response.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Errorf("the status is %v", response.GetStatus())
	}
	var lines []string
	for _, item := range response.GetItems() {
		name := map[hooksv1alpha1.PatchType]string{1: "json", 2: "merge"}[item.GetPatchType()]
		lines = append(lines, item.GetUid()+" "+name+" "+string(item.GetPatch()))
	}
	return strings.Join(lines, "\n"), nil
}

const machines = `
- selector: {kind: CloudMachineTemplate}
  `

func TestPatches(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"ByKind": {"a kind selects all its templates, in the order of the request",
			machines + `jsonPatches: [{op: add, path: /spec/template/spec/size, value: variables.size}]`,
			`1 json [{"op":"add","path":"/spec/template/spec/size","value":"small"}]
2 json [{"op":"add","path":"/spec/template/spec/size","value":"large"}]
3 json [{"op":"add","path":"/spec/template/spec/size","value":"large"}]`},
		"ControlPlane": {"of which matchResources selects some",
			`- {selector: {kind: CloudMachineTemplate, apiVersion: infra/v1, matchResources: {controlPlane: true}}, mergePatch: '{"spec": {"a": 1}}'}`,
			`1 merge {"spec":{"a":1}}`},
		"InfrastructureCluster": {"the infrastructure of the Cluster, too",
			`- {selector: {kind: CloudClusterTemplate, matchResources: {infrastructureCluster: true, controlPlane: true}}, mergePatch: '{"spec": {"a": 1}}'}`,
			`0 merge {"spec":{"a":1}}`},
		"Class": {"and workers by their class",
			`- {selector: {kind: CloudMachineTemplate, matchResources: {machineDeploymentClass: {names: ["default-*"]}}}, mergePatch: '{"spec": {"a": 1}}'}`,
			`2 merge {"spec":{"a":1}}`},
		"OtherClass": {"also by its end",
			`- {selector: {kind: CloudMachineTemplate, matchResources: {machineDeploymentClass: {names: [x, "*pu"]}}}, mergePatch: '{"spec": {"a": 1}}'}`,
			`3 merge {"spec":{"a":1}}`},
		"Pools": {"MachineDeployments are no MachinePools",
			`- {selector: {kind: CloudMachineTemplate, matchResources: {machinePoolClass: {names: ["*"]}}}, mergePatch: '{"spec": {"a": 1}}'}`, ""},
		"OtherVersion": {"nor are templates of another version selected",
			`- {selector: {kind: CloudMachineTemplate, apiVersion: infra/v2}, mergePatch: '{"spec": {"a": 1}}'}`, ""},
		"Disabled": {"what is not enabled for an item does nothing",
			machines + `enabledIf: variables.size == "small" && item.holderReference.kind != "Cluster"` + `
  mergePatch: '{"spec": {"zone": settings.zone, "cluster": request.variables[3].value.cluster.name}}'`,
			`1 merge {"spec":{"cluster":"c","zone":"z1"}}`},
		"Builtins": {"the builtin variables of the item and of the request are one",
			`- selector: {kind: CloudMachineTemplate, matchResources: {machineDeploymentClass: {names: [gpu]}}}
  jsonPatches: [{op: add, path: /spec/b, value: '{"b": variables.builtin}'}]`,
			`3 json [{"op":"add","path":"/spec/b","value":{"b":{"cluster":{"name":"c","namespace":"n"},"machineDeployment":{"class":"gpu","replicas":3,"topologyName":"t"}}}}]`},
		"InOrder": {"an entry sees what those before it did, and integers are exact",
			`- selector: {kind: CloudClusterTemplate}
  jsonPatches:
  - {op: replace, path: /spec/template/spec/region, value: variables.quota}
  - {op: add, path: /spec/template/spec/tags, value: "[]"}
- selector: {kind: CloudClusterTemplate}
  jsonPatches:
  - {op: add, path: /spec/template/spec/tags/-, value: object.spec.template.spec.region}
  - {op: remove, path: /spec/template/spec/region}
  - {op: add, path: /spec/was, value: "[item.object.spec.template.spec.region, object.spec]"}`,
			`0 json [{"op":"replace","path":"/spec/template/spec/region","value":18014398509481985},{"op":"add","path":"/spec/template/spec/tags","value":[]}]
0 json [{"op":"add","path":"/spec/template/spec/tags/-","value":18014398509481985},{"op":"remove","path":"/spec/template/spec/region"},{"op":"add","path":"/spec/was","value":["a",{"template":{"spec":{"region":18014398509481985,"tags":[]}}}]}]`},
		"Verbatim": {"and so are those of a template",
			`- selector: {kind: CloudMachineTemplate, matchResources: {controlPlane: true}}
  jsonPatches: [{op: add, path: /spec/copy, value: object.spec.template.spec.disks}]`,
			`1 json [{"op":"add","path":"/spec/copy","value":[{"id":9007199254740993}]}]`},
		"Nothing": {"an empty merge patch is none", machines + `mergePatch: '{}'`, ""},
		"Escaped": {"names in a path may have any character",
			`- selector: {kind: CloudClusterTemplate}
  jsonPatches: [{op: add, path: '/spec/a~1b"', value: "1"}]`,
			`0 json [{"op":"add","path":"/spec/a~1b\"","value":1}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patched(t, tc.spec, topology())
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v\n%s\nwant\n%s", tc.reason, err, got, tc.want)
			}
		})
	}
}

func TestPatchesFail(t *testing.T) {
	const where = `HookRule "r": spec.patches[0]`
	const item = `, for item Control n/c spec.machineTemplate.spec.infrastructureRef`
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"NoParent": {"nothing can be added to what is not there", machines + `jsonPatches: [{op: add, path: /spec/a/b, value: "1"}]`,
			where + `: the patch cannot be applied: operation 0 at "/spec/a/b": there is no such place` + item},
		"Absent": {"nor replaced", machines + `jsonPatches: [{op: replace, path: /spec/a, value: "1"}]`,
			where + `: the patch cannot be applied: operation 0 at "/spec/a": there is no such place` + item},
		"NoVariable": {"a variable may be absent", machines + `jsonPatches: [{op: add, path: /spec/a, value: variables.none}]`,
			where + `.jsonPatches[0].value: the expression fails for this request: no such key: none` + item},
		"NoCondition": {"a condition is true or false", machines + "enabledIf: variables.size\n  mergePatch: '{}'",
			where + `.enabledIf: the expression is neither true nor false for this request` + item},
		"NoObject": {"a merge patch is an object", machines + `mergePatch: variables.size`,
			where + `.mergePatch: for this request, the value of the expression is not an object` + item},
		"Dropped": {"changes are not lost", machines + `mergePatch: '{"metadata": {"name": "x"}}'`,
			where + `: the merge patch makes changes that would be lost: Cluster API keeps only changes of /spec, /metadata/labels and /metadata/annotations` + item},
		"SpecRemoved": {"nor are removals", machines + `mergePatch: '{"spec": null}'`,
			where + `: the merge patch makes changes that would be lost: Cluster API keeps only changes of /spec, /metadata/labels and /metadata/annotations` + item},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := patched(t, tc.spec, topology())
			if hook.KindOf(err) != hook.Policy || err.Error() != tc.want {
				t.Errorf("%s: got %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
	t.Run("CaseOfMember", func(t *testing.T) {
		request := topology()
		request.Items[0].Object.Raw = []byte(`{"Kind":"a","kind":"CloudMachineTemplate"}`)
		_, err := patched(t, machines+`mergePatch: '{}'`, request)
		want := where + `: object: Kind: differs from "kind" only in case, for item Cluster n/c spec.infrastructureRef`
		if hook.KindOf(err) != hook.Policy || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	})
}

func TestPatchesAreDeterministic(t *testing.T) {
	const spec = machines + `jsonPatches: [{op: add, path: /spec/b, value: variables}]`
	first, err := patched(t, spec, topology())
	if err != nil {
		t.Fatal(err)
	}
	request := topology()
	before := proto.Clone(request)
	for range 20 {
		if again, err := patched(t, spec, request); err != nil || again != first {
			t.Fatalf("got %v\n%s\nand before\n%s", err, again, first)
		}
	}
	if !proto.Equal(request, before) {
		t.Error("the request is another one")
	}
}

func TestPatchesRefused(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"None": {"a rule says something", `patches: []`, `spec.patches: Required value: must have a patch`},
		"Neither": {"an entry does", `patches: [{selector: {kind: A}}]`,
			`spec.patches[0]: Required value: must have one of jsonPatches and mergePatch`},
		"Both": {"and one thing", `patches: [{selector: {kind: A}, mergePatch: "{}", jsonPatches: [{op: remove, path: /spec/a}]}]`,
			`spec.patches[0]: Required value: must have one of jsonPatches and mergePatch`},
		"Op": {"Cluster API takes three", `patches: [{selector: {kind: A}, jsonPatches: [{op: move, path: /spec/a, value: "1"}]}]`,
			`spec.patches[0].jsonPatches[0].op: Unsupported value: "move": supported values: "add", "replace", "remove"`},
		"NoOp": {"one of which is needed", `patches: [{selector: {kind: A}, jsonPatches: [{path: /spec/a, value: "1"}]}]`,
			`spec.patches[0].jsonPatches[0].op: Required value: must be add, replace or remove`},
		"NoPath": {"with a path", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove}]}]`,
			`spec.patches[0].jsonPatches[0].path: Required value: must be a JSON pointer, such as /spec/template/spec`},
		"Path": {"which is a pointer", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: spec.a}]}]`,
			`spec.patches[0].jsonPatches[0].path: Invalid value: "spec.a": must be a JSON pointer: it begins with /, and in names ~ is ~0 and / is ~1`},
		"Escape": {"with its escapes", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: /spec/a~2}]}]`,
			`spec.patches[0].jsonPatches[0].path: Invalid value: "/spec/a~2": must be a JSON pointer: it begins with /, and in names ~ is ~0 and / is ~1`},
		"Place": {"to what Cluster API keeps", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: /metadata/name}]}]`,
			`spec.patches[0].jsonPatches[0].path: Invalid value: "/metadata/name": Cluster API keeps only changes of /spec, /metadata/labels and /metadata/annotations`},
		"Whole": {"which it cannot lose", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: /spec}]}]`,
			`spec.patches[0].jsonPatches[0].path: Invalid value: "/spec": Cluster API keeps only changes of /spec, /metadata/labels and /metadata/annotations`},
		"LongPath": {"a path has an end", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: /spec/` + strings.Repeat("a", 512) + `}]}]`,
			`spec.patches[0].jsonPatches[0].path: Too long: may not be more than 512 bytes`},
		"RemovedValue": {"what goes needs no value", `patches: [{selector: {kind: A}, jsonPatches: [{op: remove, path: /spec/a, value: "1"}]}]`,
			`spec.patches[0].jsonPatches[0].value: Forbidden: remove takes no value`},
		"NoValue": {"what comes does", `patches: [{selector: {kind: A}, jsonPatches: [{op: add, path: /spec/a}]}]`,
			`spec.patches[0].jsonPatches[0].value: Required value: must be a CEL expression`},
		"Syntax": {"that can be read", `patches: [{selector: {kind: A}, jsonPatches: [{op: add, path: /spec/a, value: "1 +"}]}]`,
			`spec.patches[0].jsonPatches[0].value: Invalid value: line 1, column 4: Syntax error: mismatched input '<EOF>'`},
		"Member": {"of a member that there is", `patches: [{selector: {kind: A}, mergePatch: '{"spec": item.holderReference.nam}'}]`,
			`spec.patches[0].mergePatch: Invalid value: line 1, column 30: undefined field 'nam'`},
		"Clock": {"and not of the time: equal requests have equal answers", `patches: [{selector: {kind: A}, mergePatch: '{"spec": string(now)}'}]`,
			`spec.patches[0].mergePatch: Invalid value: line 1, column 17: undeclared reference to 'now'`},
		"List": {"a merge patch is an object", `patches: [{selector: {kind: A}, mergePatch: '[1]'}]`,
			`spec.patches[0].mergePatch: Invalid value: must be an object, but is of type list(int)`},
		"Condition": {"a condition is one", `patches: [{selector: {kind: A}, enabledIf: '"x"', mergePatch: '{}'}]`,
			`spec.patches[0].enabledIf: Invalid value: must be true or false, but is of type string`},
		"NoKind": {"templates have a kind", `patches: [{selector: {apiVersion: infra/v1}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.kind: Required value: must be the kind of the templates`},
		"Kind": {"which is a name", `patches: [{selector: {kind: "*"}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.kind: Invalid value: "*": must be the kind of the templates, as in KubeadmControlPlaneTemplate`},
		"Version": {"and a version in a group", `patches: [{selector: {kind: A, apiVersion: v1}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.apiVersion: Invalid value: "v1": must be a group and a version, as in infrastructure.cluster.x-k8s.io/v1beta2`},
		"NoResources": {"a selector selects something", `patches: [{selector: {kind: A, matchResources: {controlPlane: false}}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.matchResources: Invalid value: selects nothing: must have one of controlPlane, infrastructureCluster, machineDeploymentClass and machinePoolClass`},
		"NoNames": {"of some class", `patches: [{selector: {kind: A, matchResources: {machineDeploymentClass: {names: []}}}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.matchResources.machineDeploymentClass.names: Required value: selects nothing without the name of a class; * stands for all`},
		"Names": {"whose names are patterns of one star", `patches: [{selector: {kind: A, matchResources: {machinePoolClass: {names: ["a*b", "*a*", "**", "*"]}}}, mergePatch: '{}'}]`,
			`spec.patches[0].selector.matchResources.machinePoolClass.names[0]: Invalid value: "a*b": must have one * at most, at the beginning or at the end
spec.patches[0].selector.matchResources.machinePoolClass.names[1]: Invalid value: "*a*": must have one * at most, at the beginning or at the end
spec.patches[0].selector.matchResources.machinePoolClass.names[2]: Invalid value: "**": must have one * at most, at the beginning or at the end`},
		"OtherHook": {"patches are for one hook", "fail: [{if: 'true', message: '\"a\"'}]",
			`spec.fail: Forbidden: rules of GeneratePatches cannot have hold, fail, windows, concurrency` + "\n" + `spec.patches: Required value: must have a patch`},
		"Many": {"a list has an end", `patches: [` + strings.Repeat(`{},`, 65) + `]`, `spec.patches: Too many: 65: must have at most 64 items`},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := compile(t, "hook: GeneratePatches\n"+tc.spec)
			if !strings.HasPrefix(got, tc.want) || strings.Count(got, "\n") != strings.Count(tc.want, "\n") {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}
