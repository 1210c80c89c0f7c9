// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd checks objects by CustomResourceDefinitions, as an API server does.
package crd

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Definition is a compiled CustomResourceDefinition.
type Definition struct {
	Internal *apiextensions.CustomResourceDefinition

	structural *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
	rules      *schemacel.Validator
}

// Compile compiles a definition of one version, v1alpha1. The test fails if an API server would refuse it, also for the
// costs of its rules.
func Compile(t testing.TB, d *apiextensionsv1.CustomResourceDefinition) *Definition {
	t.Helper()
	const version = "v1alpha1"
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	c := &Definition{Internal: &apiextensions.CustomResourceDefinition{}}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, c.Internal, nil); err != nil {
		t.Fatal(err)
	}
	c.Internal.Status.StoredVersions = []string{version}
	if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), c.Internal); len(errs) > 0 {
		t.Fatalf("an API server would refuse the definition: %v", errs.ToAggregate())
	}
	validation, err := apiextensions.GetSchemaForVersion(c.Internal, version)
	if err != nil {
		t.Fatal(err)
	}
	if c.structural, err = structuralschema.NewStructural(validation.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	if errs := structuralschema.ValidateStructural(field.NewPath("schema"), c.structural); len(errs) > 0 {
		t.Fatalf("the schema is not structural: %v", errs.ToAggregate())
	}
	if c.validator, _, err = schemavalidation.NewSchemaValidator(validation.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	c.rules = schemacel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return c
}

// Problems returns the errors of a strict API server for an object, which is created if old is nil.
func (c *Definition) Problems(t testing.TB, object, old map[string]any) []string {
	t.Helper()
	var all []string
	for _, path := range pruning.PruneWithOptions(object, c.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		all = append(all, "unknown field "+path)
	}
	errs := schemavalidation.ValidateCustomResource(nil, object, c.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	if len(errs) == 0 && c.rules != nil { // as the API server does it
		var before any
		if old != nil {
			before = old
		}
		ruleErrs, _ := c.rules.Validate(t.Context(), nil, c.structural, object, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruleErrs...)
	}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
