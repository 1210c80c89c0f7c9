// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestVariables(t *testing.T) {
	const spec = `
hook: DiscoverVariables
variables:
- {name: image, required: true, schema: {openAPIV3Schema: {type: string, default: a, minLength: 1}}}
- {name: size-of_disk, schema: {openAPIV3Schema: {type: integer, x-metadata: {labels: {a: b}}}}}
`
	variable := func(name string, required bool, schema string) *hooksv1alpha1.ClusterClassVariable {
		return &hooksv1alpha1.ClusterClassVariable{Name: name, Required: &required, Schema: &hooksv1alpha1.VariableSchema{
			OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: []byte(schema)},
		}}
	}
	want := &hooksv1alpha1.DiscoverVariablesResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Variables: []*hooksv1alpha1.ClusterClassVariable{
			variable("image", true, `{"default":"a","minLength":1,"type":"string"}`),
			variable("size-of_disk", false, `{"type":"integer","x-metadata":{"labels":{"a":"b"}}}`),
		},
	}
	got, err := answer(t, spec, &hooksv1alpha1.DiscoverVariablesRequest{})
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestVariablesRefused(t *testing.T) {
	of := func(schema string) string { return `variables: [{name: a, schema: {openAPIV3Schema: ` + schema + `}}]` }
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"None":    {"a rule says something", `variables: []`, `spec.variables: Required value: must have a variable`},
		"Builtin": {"some names are Cluster API's", `variables: [{name: builtin, schema: {openAPIV3Schema: {type: string}}}]`, `spec.variables[0].name: Invalid value: "builtin": the name "builtin" is Cluster API's own`},
		"Dot":     {"and none has a dot", `variables: [{name: a.b, schema: {openAPIV3Schema: {type: string}}}]`, `spec.variables[0].name: Invalid value: "a.b": the name "a.b" has a dot`},
		"Twice": {"a name is there once", `variables: [{name: a, schema: {openAPIV3Schema: {type: string}}}, {name: a, schema: {openAPIV3Schema: {type: string}}}]`,
			`spec.variables[1].name: Duplicate value: "a"`},
		"Audit":    {"an answer is not half there", "action: Audit\n" + of(`{type: string}`), `spec.action: Forbidden: rules of DiscoverVariables cannot have this action`},
		"NoSchema": {"values have a schema", `variables: [{name: a}]`, `spec.variables[0].schema.openAPIV3Schema: Required value: must be the schema of the values`},
		"NoType":   {"with a type", of(`{minLength: 1}`), `spec.variables[0].schema.openAPIV3Schema.type: Required value: must not be empty for specified object fields`},
		"Member":   {"and members that Cluster API knows", of(`{type: string, maxLenght: 3}`), `spec.variables[0].schema.openAPIV3Schema: Invalid value: Cluster API would drop a part of the schema: unknown field "maxLenght": did you mean "maxLength"?`},
		"Within":   {"also below", of(`{type: object, properties: {b: {type: string, title: x}}}`), `spec.variables[0].schema.openAPIV3Schema: Invalid value: Cluster API would drop a part of the schema: unknown field "properties.b.title"`},
		"Kind":     {"of the right kinds", of(`{type: string, minLength: x}`), `spec.variables[0].schema.openAPIV3Schema: Invalid value: json: cannot unmarshal string into Go struct field JSONSchemaProps.minLength of type int64`},
		"Default":  {"a default fits its schema", of(`{type: integer, default: three}`), `spec.variables[0].schema.openAPIV3Schema.default: Invalid value: "string":  in body must be of type integer: "string"`},
		"Rule":     {"and rules compile", of(`{type: string, x-kubernetes-validations: [{rule: self +}]}`), `spec.variables[0].schema.openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: "self +": compilation failed: ERROR: <input>:1:7: Syntax error`},
		"Size":     {"a schema has an end", of(`{type: string, description: ` + strings.Repeat("d", limits.RuleSchemaBytes) + `}`), `spec.variables[0].schema.openAPIV3Schema: Too long: may not be more than 65536 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := compile(t, "hook: DiscoverVariables\n"+tc.spec)
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}
