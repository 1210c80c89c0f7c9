// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// operation is one operation of a JSON patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// generatePatches patches each template by its kind, with the values of variables as they stand in the request. A
// template whose variables are not there gets no patch.
func generatePatches(q *runtimehooksv1.GeneratePatchesRequest, r *runtimehooksv1.GeneratePatchesResponse) {
	for _, item := range q.Items {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(item.Object.Raw, &object); err != nil {
			r.Status = runtimehooksv1.ResponseStatusFailure
			r.Message = fmt.Sprintf("item %s: decode template: %v", item.UID, err)
			return
		}
		values := map[string]json.RawMessage{}
		for _, list := range [][]runtimehooksv1.Variable{q.Variables, item.Variables} {
			for _, v := range list {
				values[v.Name] = v.Value.Raw
			}
		}
		answer := runtimehooksv1.GeneratePatchesResponseItem{UID: item.UID, PatchType: runtimehooksv1.JSONPatchType}
		switch object.Kind {
		case "AWSClusterTemplate":
			answer.Patch = jsonPatch(values, "replace", "/spec/template/spec/region", "region",
				"add", "/spec/template/spec/additionalTags/audit", "auditSequence",
				"add", "/spec/template/spec/unusual", "unusual")
		case "AWSMachineTemplate":
			answer.Patch = jsonPatch(values, "replace", "/spec/template/spec/instanceType", "instanceType",
				"replace", "/spec/template/spec/rootVolume", "rootVolume")
		case "AWSMachinePoolTemplate":
			answer.Patch = jsonPatch(values, "replace", "/spec/template/spec/awsLaunchTemplate/rootVolume",
				"rootVolume")
		case "KubeadmControlPlaneTemplate":
			answer.Patch = jsonPatch(values, "add",
				"/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository", "imageRepository")
		case "KubeadmConfigTemplate":
			answer.PatchType = runtimehooksv1.JSONMergePatchType
			answer.Patch = marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"verbosity":           5,
				"postKubeadmCommands": []string{"echo '" + object.Metadata.Name + " <ok> & ✓'"},
			}}}})
		}
		if answer.Patch != nil {
			r.Items = append(r.Items, answer)
		}
	}
}

// jsonPatch returns a JSON patch; steps are triples of operation, path and the name of the variable with the value.
func jsonPatch(values map[string]json.RawMessage, steps ...string) []byte {
	var operations []operation
	for i := 0; i < len(steps); i += 3 {
		if value, ok := values[steps[i+2]]; ok {
			operations = append(operations, operation{Op: steps[i], Path: steps[i+1], Value: value})
		}
	}
	if operations == nil {
		return nil
	}
	return marshal(operations)
}

// marshal is for values that this program builds itself, which always can be written.
func marshal(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

// validateTopology refuses one type of instance, wherever it is asked for.
func validateTopology(q *runtimehooksv1.ValidateTopologyRequest, r *runtimehooksv1.ValidateTopologyResponse) {
	lists := [][]runtimehooksv1.Variable{q.Variables}
	for _, item := range q.Items {
		lists = append(lists, item.Variables)
	}
	for _, list := range lists {
		for _, v := range list {
			if v.Name == "instanceType" && string(v.Value.Raw) == `"t2.nano"` {
				r.Status = runtimehooksv1.ResponseStatusFailure
				r.Message = "variable instanceType: t2.nano is too small for a node"
				return
			}
		}
	}
}

// discoverVariables answers with schemas that use most of what Cluster API's subset of OpenAPI has.
func discoverVariables(_ *runtimehooksv1.DiscoverVariablesRequest, r *runtimehooksv1.DiscoverVariablesResponse) {
	r.Variables = []clusterv1.ClusterClassVariable{
		{
			Name: "instanceType", Required: new(true),
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{
				Type: "string", Description: "type of <instances> & more", Default: raw(`"m6i.large"`),
				Example: raw(`"m6i.xlarge"`),
				Enum:    []apiextensionsv1.JSON{*raw(`"m6i.large"`), *raw(`"m6i.xlarge"`), *raw(`"m6i.2xlarge"`)},
			}},
		},
		{
			Name: "auditSequence", Required: new(false),
			DeprecatedV1Beta1Metadata: clusterv1.ClusterClassVariableMetadata{ //nolint:staticcheck // extensions still send it
				Labels: map[string]string{"kind": "counter"}, Annotations: map[string]string{"note": "größer als 2^53"},
			},
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{
				Type: "integer", Minimum: ptr.To[int64](0), Maximum: ptr.To[int64](1 << 62),
				Default: raw("9007199254740993"),
			}},
		},
		{
			Name: "rootVolume", Required: new(false),
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{
				Type: "object", Required: []string{"size"}, Default: raw(`{"size":100,"type":"gp3"}`),
				Properties: map[string]clusterv1.JSONSchemaProps{
					"size":      {Type: "integer", Minimum: ptr.To[int64](20), ExclusiveMinimum: new(true)},
					"type":      {Type: "string", Pattern: `^(gp3|io2)$`, MinLength: ptr.To[int64](1), MaxLength: ptr.To[int64](8)},
					"encrypted": {Type: "boolean", Default: raw("true")},
					"labels":    {Type: "object", AdditionalProperties: &clusterv1.JSONSchemaProps{Type: "string"}, MaxProperties: ptr.To[int64](16)},
					"snapshots": {Type: "array", UniqueItems: new(true), Items: &clusterv1.JSONSchemaProps{XIntOrString: new(true), AnyOf: []clusterv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}}},
					"extra":     {Type: "object", XPreserveUnknownFields: new(true)},
				},
				XValidations: []clusterv1.ValidationRule{{Rule: "self.size >= 20 && self.type != ''",
					Message: "size must be at least 20", Reason: clusterv1.FieldValueInvalid}},
				XMetadata: clusterv1.VariableSchemaMetadata{Labels: map[string]string{"topic": "storage"}},
			}},
		},
	}
}

func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
