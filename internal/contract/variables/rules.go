// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// checkRules returns an error if a type is none, or a rule in CEL is one that Cluster API does not take, in the same
// order in which it looks at them. There, the code is not exported.
func (s *Schema) checkRules() error {
	types := crdvalidation.RootCELContext(s.props)
	if err := checkRulesWithin(at, s.props, types, nil); err != nil {
		return err
	}
	if types != nil && types.TotalCost != nil && types.TotalCost.Total > crdvalidation.StaticEstimatedCRDCostLimit {
		return field.Forbidden(at, "the estimated cost of all rules together exceeds the limit")
	}
	_, _, err := schemavalidation.NewSchemaValidator(s.props)
	return err
}

// checkRulesWithin checks a schema and the schemas within it. What is within list is of no use to oldSelf, because
// items are not correlated.
func checkRulesWithin(
	at *field.Path, s *apiextensions.JSONSchemaProps, types *crdvalidation.CELSchemaContext, list *field.Path,
) error {
	known := []string{"array", "boolean", "integer", "number", "object", "string"}
	if s.Type != "" && !slices.Contains(known, s.Type) {
		return field.NotSupported(at.Child("type"), s.Type, known)
	}
	if _, _, err := schemavalidation.NewSchemaValidator(s); err != nil {
		return field.Invalid(at, "", err.Error())
	}
	if s.AdditionalProperties != nil && len(s.Properties) > 0 {
		return field.Forbidden(at, "additionalProperties and properties exclude each other")
	}
	for _, b := range within(at, s, types) {
		inList := list
		if b.item && list == nil {
			inList = b.at
		}
		if err := checkRulesWithin(b.at, b.schema, b.types, inList); err != nil {
			return err
		}
	}
	if len(s.XValidations) == 0 {
		return nil
	}
	structural, err := structuralschema.NewStructural(s)
	if err != nil {
		return field.Invalid(at, "", err.Error())
	}
	for i, rule := range s.XValidations {
		if err := checkTextsOf(at.Child("x-kubernetes-validations").Index(i), rule, structural); err != nil {
			return err
		}
	}
	if types == nil {
		return nil
	}
	return compileRules(at.Child("x-kubernetes-validations"), s, types, list)
}

// checkTextsOf checks a rule without compiling it.
func checkTextsOf(at *field.Path, rule apiextensions.ValidationRule, s *structuralschema.Structural) error {
	const longest = 2048
	text, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
	reasons := []string{
		string(clusterv1.FieldValueDuplicate), string(clusterv1.FieldValueForbidden), string(clusterv1.FieldValueInvalid),
		string(clusterv1.FieldValueRequired),
	}
	blank := func(s string) bool { return s != "" && strings.TrimSpace(s) == "" }
	lines := func(s string) bool { return strings.ContainsAny(s, "\n\r") }
	switch {
	case text == "":
		return field.Required(at.Child("rule"), "")
	case blank(rule.Message):
		return field.Invalid(at.Child("message"), rule.Message, "is blank")
	case len(rule.Message) > longest:
		return field.TooLong(at.Child("message"), "", longest)
	case lines(message):
		return field.Invalid(at.Child("message"), rule.Message, "must not contain line breaks")
	case lines(text) && message == "":
		return field.Required(at.Child("message"), "the rule contains line breaks")
	case blank(rule.MessageExpression):
		return field.Required(at.Child("messageExpression"), "it is blank")
	case rule.Reason != nil && !slices.Contains(reasons, string(*rule.Reason)):
		return field.NotSupported(at.Child("reason"), *rule.Reason, reasons)
	case blank(rule.FieldPath), lines(rule.FieldPath):
		return field.Invalid(at.Child("fieldPath"), rule.FieldPath, "is blank or contains line breaks")
	}
	if rule.FieldPath != "" {
		if _, _, err := schemacel.ValidFieldPath(rule.FieldPath, s); err != nil {
			return field.Invalid(at.Child("fieldPath"), rule.FieldPath, err.Error())
		}
	}
	return nil
}

// compileRules compiles the rules of one schema, and adds up what they may cost.
func compileRules(
	at *field.Path, s *apiextensions.JSONSchemaProps, types *crdvalidation.CELSchemaContext, list *field.Path,
) error {
	info, err := types.TypeInfo()
	if err != nil || info == nil {
		return field.InternalError(at, fmt.Errorf("the rules have no type: %w", err))
	}
	results, err := schemacel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), schemacel.NewExpressionsEnvLoader())
	if err != nil {
		return field.InternalError(at, err)
	}
	for i, r := range results {
		rule := at.Index(i).Child("rule")
		cost := costOf(r, types)
		if types.TotalCost != nil {
			types.TotalCost.ObserveExpressionCost(rule, cost)
		}
		switch {
		case cost > crdvalidation.StaticEstimatedCostLimit:
			return field.Forbidden(rule, "its estimated cost exceeds the limit: limit the lengths of lists, "+
				"maps and strings")
		case r.Error != nil:
			return field.Invalid(rule, s.XValidations[i].Rule, r.Error.Detail)
		case r.MessageExpressionError != nil:
			return field.Invalid(at.Index(i).Child("messageExpression"), s.XValidations[i].MessageExpression,
				r.MessageExpressionError.Detail)
		case r.MessageExpression != nil && r.MessageExpressionMaxCost > crdvalidation.StaticEstimatedCostLimit:
			return field.Forbidden(at.Index(i).Child("messageExpression"), "its estimated cost exceeds the limit")
		case r.UsesOldSelf && list != nil:
			return field.Invalid(rule, s.XValidations[i].Rule, fmt.Sprintf("oldSelf cannot be used within %s", list))
		}
		if r.MessageExpression != nil && types.TotalCost != nil {
			types.TotalCost.ObserveExpressionCost(at.Index(i).Child("messageExpression"), r.MessageExpressionMaxCost)
		}
	}
	return nil
}

// costOf returns what a rule may cost altogether, wherever it applies.
func costOf(r schemacel.CompilationResult, types *crdvalidation.CELSchemaContext) uint64 {
	times := r.MaxCardinality
	if types.MaxCardinality != nil {
		times = *types.MaxCardinality
	}
	if high, low := bits.Mul64(r.MaxCost, times); high == 0 {
		return low
	}
	return ^uint64(0)
}
