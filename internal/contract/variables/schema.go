// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package variables judges definitions of variables as Cluster API does, where the code is not exported.
package variables

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
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Schema is the schema of a variable, in the form in which Cluster API checks it.
//
// Package infrastructure/parameters judges schemas, too, as the API server judges a definition of a kind.
// Both share the API server's code, and differ for these reasons, which schema_test.go holds against a table:
// Cluster API's type drops the members that it does not know, where an author of parameters learns of a typing error;
// it does not look at descriptions and at marks that are false; x-metadata is its own; it also checks examples and
// enums; and oldSelf has a meaning, because it knows the value before. Limits on size are for parameters alone, whose
// schemas stay in memory.
type Schema struct {
	props      *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
}

// at is where a schema is in the definition of a variable.
var at = field.NewPath("openAPIV3Schema")

// Parse reads an openAPIV3Schema as Cluster API does, with its Go type, and returns an error if Cluster API does not
// take it, whatever its values are.
func Parse(openAPIV3Schema []byte) (*Schema, error) {
	if len(openAPIV3Schema) == 0 {
		return nil, errors.New("it has no schema.openAPIV3Schema")
	}
	var ours clusterv1.JSONSchemaProps
	if err := json.Unmarshal(openAPIV3Schema, &ours); err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	if err := normalize(at, &ours); err != nil {
		return nil, err
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
	s := &Schema{props: &apiextensions.JSONSchemaProps{}}
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, s.props, nil)
	if err != nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema: %w", err)
	}
	// Only objects may be structural at the root, so the schema is wrapped as that of a member.
	wrapped, err := structuralschema.NewStructural(&apiextensions.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"variable": *s.props},
	})
	if err != nil {
		return nil, err
	}
	if errs := structuralschema.ValidateStructural(nil, wrapped); len(errs) > 0 {
		errs[0].Field = strings.Replace(errs[0].Field, "properties[variable]", at.String(), 1)
		return nil, errs[0]
	}
	structural := wrapped.Properties["variable"]
	s.structural = &structural
	return s, s.checkRules()
}

// normalize leaves out what Cluster API does not look at in a schema, which the rules of the API server would refuse:
// descriptions, values that are null, and marks that are false. It returns an error if the labels or annotations of a
// schema are wrong.
func normalize(at *field.Path, s *clusterv1.JSONSchemaProps) error {
	if err := CheckMetadata(at.Child("x-metadata"), s.XMetadata.Labels, s.XMetadata.Annotations); err != nil {
		return err
	}
	s.Description, s.XMetadata = "", clusterv1.VariableSchemaMetadata{}
	if p := s.XPreserveUnknownFields; p != nil && !*p {
		s.XPreserveUnknownFields = nil
	}
	if s.Default != nil && s.Default.Raw == nil {
		s.Default = nil
	}
	if s.Example != nil && s.Example.Raw == nil {
		s.Example = nil
	}
	s.Enum = slices.DeleteFunc(s.Enum, func(value apiextensionsv1.JSON) bool { return value.Raw == nil })
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		if err := normalize(at.Child("properties").Key(name), &below); err != nil {
			return err
		}
		s.Properties[name] = below
	}
	for name, below := range map[string]*clusterv1.JSONSchemaProps{
		"items": s.Items, "additionalProperties": s.AdditionalProperties, "not": s.Not,
	} {
		if below == nil {
			continue
		}
		if err := normalize(at.Child(name), below); err != nil {
			return err
		}
	}
	for name, list := range map[string][]clusterv1.JSONSchemaProps{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		for i := range list {
			if err := normalize(at.Child(name).Index(i), &list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckMetadata returns an error if labels or annotations are not those of Kubernetes.
func CheckMetadata(at *field.Path, labels, annotations map[string]string) error {
	errs := metav1validation.ValidateLabels(labels, at.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(annotations, at.Child("annotations"))...)
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// CheckValues returns an error if a default, an example or a value of an enum is not one that the schema takes.
func (s *Schema) CheckValues(ctx context.Context) error {
	// Members of a default that the schema does not know are errors, too, and its rules apply.
	errs, err := defaulting.ValidateDefaults(ctx, at, s.structural, false, true)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return eachSchema(at, s.props, func(at *field.Path, s *apiextensions.JSONSchemaProps) error {
		return checkValuesOf(ctx, at, s)
	})
}

// checkValuesOf checks the example and the enum of one schema, first by the schema and then by its rules.
func checkValuesOf(ctx context.Context, at *field.Path, s *apiextensions.JSONSchemaProps) error {
	validator, _, err := schemavalidation.NewSchemaValidator(s)
	if err != nil {
		return err
	}
	var rules *schemacel.Validator
	var structural *structuralschema.Structural
	if len(s.XValidations) > 0 {
		if structural, err = structuralschema.NewStructural(s); err != nil {
			return err
		}
		rules = schemacel.NewValidator(structural, false, celconfig.PerCallLimit)
	}
	check := func(at *field.Path, value any) error {
		if errs := schemavalidation.ValidateCustomResource(at, value, validator); len(errs) > 0 {
			return errs[0]
		}
		if rules != nil {
			errs, _ := rules.Validate(ctx, at, structural, value, nil, celconfig.RuntimeCELCostBudget)
			if len(errs) > 0 {
				return errs[0]
			}
		}
		return nil
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
	return nil
}

// eachSchema calls check with a schema and with all schemas within it, until one fails.
func eachSchema(
	at *field.Path, s *apiextensions.JSONSchemaProps, check func(*field.Path, *apiextensions.JSONSchemaProps) error,
) error {
	if err := check(at, s); err != nil {
		return err
	}
	for _, b := range within(at, s, nil) {
		if err := eachSchema(b.at, b.schema, check); err != nil {
			return err
		}
	}
	return nil
}

// schemaWithin is a schema directly within another.
type schemaWithin struct {
	at     *field.Path
	schema *apiextensions.JSONSchemaProps
	types  *crdvalidation.CELSchemaContext // nil where rules have no type
	item   bool                            // the schema of the items of a list
}

// within returns the schemas directly within one, in order.
func within(at *field.Path, s *apiextensions.JSONSchemaProps, types *crdvalidation.CELSchemaContext) []schemaWithin {
	var all []schemaWithin
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		all = append(all, schemaWithin{
			at: at.Child("additionalProperties"), schema: a.Schema, types: types.ChildAdditionalPropertiesContext(a.Schema),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		all = append(all, schemaWithin{
			at: at.Child("properties").Key(name), schema: &p, types: types.ChildPropertyContext(&p, name),
		})
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, schemaWithin{
			at: at.Child("items"), schema: s.Items.Schema, types: types.ChildItemsContext(s.Items.Schema), item: true,
		})
	}
	if s.Not != nil {
		all = append(all, schemaWithin{at: at.Child("not"), schema: s.Not})
	}
	for _, junctor := range []struct {
		name string
		of   []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range junctor.of {
			all = append(all, schemaWithin{at: at.Child(junctor.name).Index(i), schema: &junctor.of[i]})
		}
	}
	return all
}
