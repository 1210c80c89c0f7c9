// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// costBudget bounds all rules of one check together, to a hundredth of what the API server allows them for an object.
// Parameters are smaller than objects, and the same check runs whenever an object is reconciled. A rule that compares
// each of 100 elements with each other costs half of it.
const costBudget = limits.ParameterCost

// maxRules bounds the rules of a schema, each of which is a program that stays in memory.
const maxRules = limits.ParameterRules

// member is the name of the parameters within the schema of an object that a Schema is compiled as. The API server's
// code takes the schemas of objects alone.
const member = "parameters"

// oldSelf finds rules that compare a value with the one before.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// A Schema checks parameters.
type Schema struct {
	structural *structuralschema.Structural // of an object with the member; nil if everything is accepted
	validator  schemavalidation.SchemaValidator
	rules      *schemacel.Validator // nil without rules
}

// Compile returns the Schema of a text in JSON. Without a text there are no parameters, as the contract has it; {}
// accepts all. The errors name the place in the schema, and say what an author has to change.
//
// The rules are the API server's for definitions of kinds. Those for the variables of a ClusterClass are Cluster API's,
// and differ: see internal/contract/variables.
func Compile(text []byte) (*Schema, error) {
	if len(text) == 0 {
		text = []byte(`{"type": "object"}`)
	}
	root := field.NewPath("schema")
	parsed, problem := parseObject(root, text, limits.ParameterSchemaBytes, limits.ParameterSchemaDepth)
	if problem != nil {
		return nil, problem
	}
	if len(parsed) == 0 {
		return &Schema{}, nil
	}
	props := apiextensionsv1.JSONSchemaProps{}
	strict, err := kubejson.UnmarshalStrict(text, &props)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(strict) > 0 {
		return nil, problems(strictProblems(root, strict)).ToAggregate()
	}
	if problem := checkLimits(root, &props); problem != nil {
		return nil, problem
	}
	internal, err := definition(&props)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		return nil, problems(schemaProblems(root, errs)).ToAggregate()
	}
	return compile(internal)
}

// compile returns the Schema of a definition that is valid.
func compile(d *apiextensions.CustomResourceDefinition) (*Schema, error) {
	validation, err := apiextensions.GetSchemaForVersion(d, version)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s := &Schema{}
	if s.structural, err = structuralschema.NewStructural(validation.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if s.validator, _, err = schemavalidation.NewSchemaValidator(validation.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.rules = schemacel.NewValidator(s.structural, true, costBudget)
	return s, nil
}

const version = "v1alpha1"

// definition returns a definition of a kind that has the parameters as a member.
func definition(parameters *apiextensionsv1.JSONSchemaProps) (*apiextensions.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "parameters.infrastructure.hookgate.dev"
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "infrastructure.hookgate.dev",
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "parameters", Singular: "parameter", Kind: "Parameter", ListKind: "ParameterList",
		},
		Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{member: *parameters},
			}},
		}},
	}
	d.Status.StoredVersions = []string{version}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, internal, nil)
	return internal, err
}

// checkLimits checks what the API server leaves open, because objects have room for it and uses of it.
func checkLimits(at *field.Path, s *apiextensionsv1.JSONSchemaProps) error {
	if s.Type != "object" {
		return field.NotSupported(at.Child("type"), s.Type, []string{"object"})
	}
	rules := 0
	for path, below := range schemas(at, s) {
		if problem := checkTexts(path, below); problem != nil {
			return problem
		}
		for i, rule := range below.XValidations {
			if rules++; rules > maxRules {
				return field.TooMany(path.Child("x-kubernetes-validations"), rules, maxRules)
			}
			if oldSelf.MatchString(rule.Rule) {
				return field.Forbidden(path.Child("x-kubernetes-validations").Index(i).Child("rule"),
					"must not use oldSelf: parameters are checked without their previous values")
			}
		}
	}
	return nil
}

// checkTexts checks the sizes of what the texts of problems repeat.
func checkTexts(at *field.Path, s *apiextensionsv1.JSONSchemaProps) *field.Error {
	size := 0
	for _, value := range s.Enum {
		size += len(value.Raw)
	}
	switch {
	case size > limits.ParameterEnumBytes:
		return field.TooLong(at.Child("enum"), nil, limits.ParameterEnumBytes)
	case len(s.Pattern) > limits.ParameterPatternBytes:
		return field.TooLong(at.Child("pattern"), nil, limits.ParameterPatternBytes)
	}
	return nil
}

// Resolve returns the parameters of a request: own merged into defaults as a JSON merge patch (RFC 7386), with the
// defaults of the schema. Both may be empty. It returns the problems of the result instead, at a path that stands for
// own, if there are any.
func (s *Schema) Resolve(
	ctx context.Context, at *field.Path, defaults, own []byte,
) ([]byte, field.ErrorList) {
	merged, errs := merge(at, defaults, own)
	if len(errs) > 0 {
		return nil, errs
	}
	if s.structural != nil {
		if errs := s.check(ctx, at, merged, false); len(errs) > 0 {
			return nil, errs
		}
	}
	return encode(at, merged)
}

// Validate returns the problems of parameters as they are, without defaults other than those of the schema. Their
// fields are below at.
func (s *Schema) Validate(ctx context.Context, at *field.Path, parameters []byte) field.ErrorList {
	_, errs := s.Resolve(ctx, at, nil, parameters)
	return errs
}

// ValidatePartly returns the problems of parameters that others are going to complete: it asks for no member, and
// leaves rules out, which may need members that are still missing.
func (s *Schema) ValidatePartly(ctx context.Context, at *field.Path, parameters []byte) field.ErrorList {
	parsed, problem := parse(at, parameters)
	if problem != nil || s.structural == nil {
		return single(problem)
	}
	return s.check(ctx, at, parsed, true)
}

// check adds the defaults of the schema to parameters, and returns their problems. Parts lack members.
func (s *Schema) check(ctx context.Context, at *field.Path, parameters map[string]any, part bool) field.ErrorList {
	object := map[string]any{member: parameters}
	// In the API server's order: without null where it is not a value, with defaults, and without unknown members.
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	var errs field.ErrorList
	for _, path := range pruning.PruneWithOptions(object, s.structural, false,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeForbidden, Field: path, Detail: "is not a member that the extension knows",
		})
	}
	// The code of the API server reads the size of the object, and changes nothing.
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if part {
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return e.Type == field.ErrorTypeRequired || e.Type == field.ErrorTypeTooFew
		})
	}
	if len(errs) == 0 && s.rules != nil && !part {
		failed, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, costBudget)
		for _, err := range failed {
			err.BadValue = field.OmitValueType{} // it is the name of a type
		}
		errs = append(errs, failed...)
	}
	for _, err := range errs {
		clean(err)
		err.Field = at.String() + strings.TrimPrefix(err.Field, member)
	}
	return problems(errs)
}

// schemas returns a schema and all below it, with their paths, in a fixed order.
func schemas(
	at *field.Path, s *apiextensionsv1.JSONSchemaProps,
) iter.Seq2[*field.Path, *apiextensionsv1.JSONSchemaProps] {
	return func(yield func(*field.Path, *apiextensionsv1.JSONSchemaProps) bool) { each(at, s, yield) }
}

func each(
	at *field.Path, s *apiextensionsv1.JSONSchemaProps, yield func(*field.Path, *apiextensionsv1.JSONSchemaProps) bool,
) bool {
	if !yield(at, s) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		if !each(at.Child("properties").Key(name), &below, yield) {
			return false
		}
	}
	if s.Items != nil && s.Items.Schema != nil && !each(at.Child("items"), s.Items.Schema, yield) {
		return false
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		return each(at.Child("additionalProperties"), a.Schema, yield)
	}
	return true
}
