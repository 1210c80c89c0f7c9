// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var variableChecks = []Check{
	{
		ID: "variables.names", Level: Must,
		Rule:   `Variables have names, no two the same, none "builtin", and none with a dot.`,
		Source: classRules + "validateClusterClassVariableName",
		run: func(ctx context.Context, s *session, v *verdict) {
			seen := map[*exchange]map[string]bool{}
			eachVariable(func(x *exchange, d variableDefinition) string {
				if seen[x] == nil {
					seen[x] = map[string]bool{}
				}
				switch {
				case d.Name == "":
					return "the name is empty"
				case d.Name == "builtin":
					return `the name "builtin" is Cluster API's own`
				case strings.Contains(d.Name, "."):
					return fmt.Sprintf("the name %q has a dot", d.Name)
				case seen[x][d.Name]:
					return fmt.Sprintf("the name %q is there twice", d.Name)
				}
				seen[x][d.Name] = true
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "variables.schemas", Level: Must,
		Rule:   "The schema of a variable is a structural schema of the subset of OpenAPI that Cluster API takes.",
		Source: classRules + "validateRootSchema",
		run: eachVariable(func(_ *exchange, d variableDefinition) string {
			if _, err := schemaOf(d); err != nil {
				return fmt.Sprintf("variable %q: %s", d.Name, err)
			}
			return ""
		}),
	},
	{
		ID: "variables.values", Level: Must,
		Rule:   "The default, example and enum of a schema are values that it takes.",
		Source: classRules + "validateSchema",
		run: eachVariable(func(_ *exchange, d variableDefinition) string {
			schema, err := schemaOf(d)
			if err != nil {
				return "" // for variables.schemas
			}
			if err := checkValues(field.NewPath("openAPIV3Schema"), schema); err != nil {
				return fmt.Sprintf("variable %q: %s", d.Name, err)
			}
			return ""
		}),
	},
}

// eachVariable returns a run that reports the problems that check finds in the variables of all handlers of
// DiscoverVariables.
func eachVariable(check func(*exchange, variableDefinition) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		variables := 0
		for _, h := range s.working(ctx, v, "DiscoverVariables") {
			x := s.base(ctx, h)
			for i, d := range x.parsed.Variables {
				variables++
				if problem := check(x, d); problem != "" {
					v.failf(x, "variables[%d]: %s", i, problem)
				}
			}
		}
		if variables == 0 && v.notFor == "" {
			v.skipf("the realistic request got no variables")
		}
	}
}

// schemaOf reads a schema as Cluster API does, with its Go type, and returns an error unless it is structural.
func schemaOf(d variableDefinition) (*apiextensions.JSONSchemaProps, error) {
	if len(d.Schema.OpenAPIV3Schema) == 0 {
		return nil, errors.New("it has no schema.openAPIV3Schema")
	}
	var ours clusterv1.JSONSchemaProps
	if err := json.Unmarshal(d.Schema.OpenAPIV3Schema, &ours); err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	// The names of members are the same, and the members that Cluster API does not know are gone.
	text, err := json.Marshal(ours)
	if err != nil {
		return nil, err
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &external); err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	withoutFalse(&external)
	schema := &apiextensions.JSONSchemaProps{}
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, schema, nil)
	if err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	at := field.NewPath("openAPIV3Schema")
	if err := checkTypes(at, schema); err != nil {
		return nil, err
	}
	// Only objects may be structural at the root, so the schema is wrapped as that of a member.
	structural, err := structuralschema.NewStructural(&apiextensions.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"variable": *schema},
	})
	if err != nil {
		return nil, err
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		errs[0].Field = strings.Replace(errs[0].Field, "properties[variable]", "openAPIV3Schema", 1)
		return nil, errs[0]
	}
	if _, _, err := schemavalidation.NewSchemaValidator(schema); err != nil {
		return nil, err
	}
	return schema, nil
}

// withoutFalse removes the marks that the API server accepts only if they are true.
func withoutFalse(s *apiextensionsv1.JSONSchemaProps) {
	if p := s.XPreserveUnknownFields; p != nil && !*p {
		s.XPreserveUnknownFields = nil
	}
	for name, below := range s.Properties {
		withoutFalse(&below)
		s.Properties[name] = below
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutFalse(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutFalse(s.AdditionalProperties.Schema)
	}
}

// checkTypes checks the types, which the rules of structural schemas leave open.
func checkTypes(at *field.Path, s *apiextensions.JSONSchemaProps) error {
	switch s.Type {
	case "", "object", "array", "string", "number", "integer", "boolean":
	default:
		return field.NotSupported(at.Child("type"), s.Type,
			[]string{"array", "boolean", "integer", "number", "object", "string"})
	}
	if s.AdditionalProperties != nil && len(s.Properties) > 0 {
		return field.Forbidden(at, "additionalProperties and properties exclude each other")
	}
	for i, rule := range s.XValidations {
		if strings.TrimSpace(rule.Rule) == "" {
			return field.Required(at.Child("x-kubernetes-validations").Index(i).Child("rule"), "")
		}
	}
	return below(at, s, checkTypes)
}

// checkValues checks the values within a schema against it.
func checkValues(at *field.Path, s *apiextensions.JSONSchemaProps) error {
	validator, _, err := schemavalidation.NewSchemaValidator(s)
	if err != nil {
		return err
	}
	check := func(at *field.Path, value any) error {
		if errs := schemavalidation.ValidateCustomResource(at, value, validator); len(errs) > 0 {
			return errs[0]
		}
		return nil
	}
	if s.Default != nil {
		if err := check(at.Child("default"), *s.Default); err != nil {
			return err
		}
	}
	if s.Example != nil {
		if err := check(at.Child("example"), *s.Example); err != nil {
			return err
		}
	}
	for i, value := range s.Enum {
		if err := check(at.Child("enum").Index(i), value); err != nil {
			return err
		}
	}
	return below(at, s, checkValues)
}

// below calls check with each schema directly within a schema, until one fails.
func below(
	at *field.Path, s *apiextensions.JSONSchemaProps, check func(*field.Path, *apiextensions.JSONSchemaProps) error,
) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if err := check(at.Child("properties").Key(name), &property); err != nil {
			return err
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		if err := check(at.Child("items"), s.Items.Schema); err != nil {
			return err
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return check(at.Child("additionalProperties"), s.AdditionalProperties.Schema)
	}
	return nil
}
