// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster/patches/inline"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// topologyRequest has templates of two kinds for holders of all kinds. Its builtin variables have what Cluster API always
// writes, because it merges them by their Go type.
const topologyRequest = `
apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1
kind: GeneratePatchesRequest
variables:
- {name: builtin, value: {cluster: {name: c, topology: {version: v1.36.0, class: k, classRef: {name: k, namespace: ns}}}, controlPlane: {replicas: 3}}}
- {name: size, value: small}
- {name: tags, value: [a, "b\"<", {c: 1.5}]}
- {name: count, value: 9007199254740993}
items:
%s
`

// holders are what uses templates: kinds, paths and classes of workers.
var holders = []string{
	`holderReference: {kind: Cluster, fieldPath: spec.infrastructureRef}`,
	`holderReference: {kind: Cluster, fieldPath: spec.controlPlaneRef}`,
	`holderReference: {kind: Control, fieldPath: spec.machineTemplate.infrastructureRef}`,
	`holderReference: {kind: Control, fieldPath: spec.machineTemplate.spec.infrastructureRef}`,
	`holderReference: {kind: MachineDeployment, fieldPath: spec.template.spec.infrastructureRef}, ` +
		`variables: [{name: builtin, value: {machineDeployment: {class: default-worker, version: v1.35.0}}}, {name: size, value: large}]`,
	`holderReference: {kind: MachineDeployment, fieldPath: spec.template.spec.bootstrap.configRef}, ` +
		`variables: [{name: builtin, value: {cluster: {topology: {version: v1.37.0}}, machineDeployment: {class: gpu}}}]`,
	`holderReference: {kind: MachineDeployment, fieldPath: spec.template.spec.infrastructureRef}`,
	`holderReference: {kind: MachineDeployment, fieldPath: spec.other}, variables: [{name: builtin, value: {machineDeployment: {class: gpu}}}]`,
	`holderReference: {kind: MachinePool, fieldPath: spec.template.spec.infrastructureRef}, ` +
		`variables: [{name: builtin, value: {machinePool: {class: default-worker}}}]`,
	`holderReference: {kind: MachinePool, fieldPath: spec.template.spec.bootstrap.configRef}, ` +
		`variables: [{name: builtin, value: {machinePool: {class: ""}}}]`,
}

// definitions are patches of a ClusterClass, and what they are in a rule.
var definitions = map[string]struct{ class, rule string }{
	"variable":         {`{op: add, path: /spec/a, valueFrom: {variable: size}}`, `{op: add, path: /spec/a, value: variables.size}`},
	"list":             {`{op: replace, path: /spec/template, valueFrom: {variable: tags}}`, `{op: replace, path: /spec/template, value: variables.tags}`},
	"element":          {`{op: add, path: /spec/a, valueFrom: {variable: "tags[1]"}}`, `{op: add, path: /spec/a, value: "variables.tags[1]"}`},
	"exact":            {`{op: add, path: /spec/a, valueFrom: {variable: count}}`, `{op: add, path: /spec/a, value: variables.count}`},
	"builtin":          {`{op: add, path: /spec/a, valueFrom: {variable: builtin.cluster.topology.version}}`, `{op: add, path: /spec/a, value: variables.builtin.cluster.topology.version}`},
	"builtins":         {`{op: add, path: /spec/a, valueFrom: {variable: builtin.cluster.topology}}`, `{op: add, path: /spec/a, value: variables.builtin.cluster.topology}`},
	"template":         {`{op: add, path: /spec/a, valueFrom: {template: '"{{ .builtin.cluster.name }}-{{ .size }}"'}}`, `{op: add, path: /spec/a, value: 'variables.builtin.cluster.name + "-" + variables.size'}`},
	"template of more": {`{op: add, path: /spec/a, valueFrom: {template: '{x: {{ .builtin.controlPlane.replicas }}}'}}`, `{op: add, path: /spec/a, value: '{"x": variables.builtin.controlPlane.replicas}'}`},
	"value":            {`{op: add, path: /spec/a, value: {b: [1, x]}}`, `{op: add, path: /spec/a, value: '{"b": [1, "x"]}'}`},
	"remove":           {`{op: remove, path: /spec/template}`, `{op: remove, path: /spec/template}`},
}

// selectors are what ClusterClasses and rules have alike.
var selectors = []string{
	`{controlPlane: true}`, `{infrastructureCluster: true}`, `{controlPlane: true, infrastructureCluster: true}`,
	`{machineDeploymentClass: {names: [gpu, other]}}`, `{machineDeploymentClass: {names: ["*"]}}`,
	`{machineDeploymentClass: {names: ["default-*"]}}`, `{machineDeploymentClass: {names: ["*worker"]}, controlPlane: true}`,
	`{machinePoolClass: {names: ["*"]}}`, `{machinePoolClass: {names: [default-worker]}, machineDeploymentClass: {names: [x]}}`,
}

// TestRulesAndInlinePatches checks that a rule answers what Cluster API makes of the patches of a ClusterClass that say
// the same.
func TestRulesAndInlinePatches(t *testing.T) {
	var items strings.Builder
	for i, holder := range holders {
		for _, template := range []string{"infra/v1, kind: ATemplate", "infra/v1, kind: BTemplate", "infra/v2, kind: ATemplate"} {
			fmt.Fprintf(&items, "- {uid: %q, object: {apiVersion: %s, spec: {template: {}}}, %s}\n",
				fmt.Sprintf("%d %s", i, template), template, holder)
		}
	}
	request := []byte(fmt.Sprintf(topologyRequest, items.String()))
	for name, definition := range definitions {
		for _, resources := range selectors {
			t.Run(name+" "+resources, func(t *testing.T) {
				selector := `{apiVersion: infra/v1, kind: ATemplate, matchResources: ` + resources + `}`
				want := byClusterClass(t, `{selector: `+selector+`, jsonPatches: [`+definition.class+`]}`, request)
				got := byRule(t, `{selector: `+selector+`, jsonPatches: [`+definition.rule+`]}`, request)
				if len(want) == 0 {
					t.Fatal("nothing is patched")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-Cluster API +rule\n%s", diff)
				}
			})
		}
	}
}

// patchOf is a patch in an answer.
type patchOf struct {
	UID   string
	Patch any
}

func readPatch(t *testing.T, uid string, patch []byte) patchOf {
	t.Helper()
	var operations any
	d := json.NewDecoder(bytes.NewReader(patch))
	d.UseNumber() // integers are exact
	if err := d.Decode(&operations); err != nil {
		t.Fatal(err)
	}
	return patchOf{uid, operations}
}

// byClusterClass returns the patches of a definition of a ClusterClass.
func byClusterClass(t *testing.T, definition string, request []byte) []patchOf {
	t.Helper()
	r := &runtimehooksv1.GeneratePatchesRequest{}
	var d clusterv1.PatchDefinition
	if err := yaml.UnmarshalStrict([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(request, r); err != nil {
		t.Fatal(err)
	}
	for i := range r.Items {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(r.Items[i].Object.Raw, &o.Object); err != nil {
			t.Fatal(err)
		}
		r.Items[i].Object.Object = o
	}
	patch := &clusterv1.ClusterClassPatch{Definitions: []clusterv1.PatchDefinition{d}}
	response, err := inline.NewGenerator(patch).Generate(t.Context(), nil, r)
	if err != nil {
		t.Fatal(err)
	}
	var all []patchOf
	for _, item := range response.Items {
		all = append(all, readPatch(t, string(item.UID), item.Patch))
	}
	return all
}

// byRule returns the patches of an entry of a rule.
func byRule(t *testing.T, entry string, request []byte) []patchOf {
	t.Helper()
	hooks := catalog.New()
	cel, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte("hook: GeneratePatches\npatches: ["+entry+"]"), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Name = "r"
	reg, errs := hookrule.NewCompiler(hooks, cel, types, time.Now).Compile(o)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	body, err := yaml.YAMLToJSON(request)
	if err != nil {
		t.Fatal(err)
	}
	r := &hooksv1alpha1.GeneratePatchesRequest{}
	if err := codec.New(hooks).Decode(body, r); err != nil {
		t.Fatal(err)
	}
	answer, err := reg.InProcess.Answer(t.Context(), r, policy.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	response, _ := answer.(*hooksv1alpha1.GeneratePatchesResponse)
	var all []patchOf
	for _, item := range response.GetItems() {
		all = append(all, readPatch(t, item.GetUid(), item.GetPatch()))
	}
	return all
}
