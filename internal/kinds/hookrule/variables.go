// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/redact"
	variableschema "github.com/hookgate/hookgate/internal/contract/variables"
	"github.com/hookgate/hookgate/internal/kinds"
)

// variables is what rules of DiscoverVariables may say.
func variables() category {
	return category{
		hooks:   func(h *catalog.Hook) bool { return h.Hook == "DiscoverVariables" },
		fields:  []string{"variables"},
		compile: compileVariables,
	}
}

// variablesRule answers DiscoverVariables, always with the same answer.
type variablesRule struct {
	response *hooksv1alpha1.DiscoverVariablesResponse
}

func compileVariables(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer {
	at := path.Child("variables")
	if len(spec.Variables) == 0 {
		in.errs = append(in.errs, field.Required(at, "must have a variable"))
	}
	rule := variablesRule{&hooksv1alpha1.DiscoverVariablesResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
	}}
	seen := map[string]bool{}
	for i := range in.bounded(len(spec.Variables), at) {
		from, at := &spec.Variables[i], at.Index(i)
		if err := variableschema.CheckName(from.Name); err != nil {
			in.errs = append(in.errs, field.Invalid(at.Child("name"), text.Cut(from.Name, limits.QuotedBytes), err.Error()))
		} else if seen[from.Name] {
			in.errs = append(in.errs, field.Duplicate(at.Child("name"), from.Name))
		}
		seen[from.Name] = true
		rule.response.Variables = append(rule.response.Variables, &hooksv1alpha1.ClusterClassVariable{
			Name: from.Name, Required: &from.Required, Schema: &hooksv1alpha1.VariableSchema{
				OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: in.schema(from, at.Child("schema"))},
			},
		})
	}
	return rule
}

// schema returns the schema of a variable, whose mistakes it notes: those for which Cluster API would refuse the
// variable, and members that it would drop.
func (in *compilation) schema(from *v1alpha1.HookRuleVariable, path *field.Path) []byte {
	at := path.Child("openAPIV3Schema")
	if from.Schema.OpenAPIV3Schema == nil || len(from.Schema.OpenAPIV3Schema.Raw) == 0 {
		in.errs = append(in.errs, field.Required(at, "must be the schema of the values"))
		return nil
	}
	raw := from.Schema.OpenAPIV3Schema.Raw
	if len(raw) > limits.RuleSchemaBytes {
		in.errs = append(in.errs, field.TooLong(at, nil, limits.RuleSchemaBytes))
		return nil
	}
	wrong := func(what string) {
		in.errs = append(in.errs, field.Invalid(at, field.OmitValueType{}, redact.Bounded(what, limits.ProblemBytes)))
	}
	var known clusterv1.JSONSchemaProps
	strict, err := kubejson.UnmarshalStrict(raw, &known)
	switch {
	case err != nil:
		wrong(err.Error())
		return raw
	case len(strict) > 0:
		wrong(fmt.Sprintf("Cluster API would drop a part of the schema: %s", kinds.FieldError(strict[0], &known)))
		return raw
	}
	schema, err := variableschema.Parse(raw)
	if err == nil {
		err = schema.CheckValues(context.Background())
	}
	if within, ok := errors.AsType[*field.Error](err); ok {
		within.Field, within.Detail = path.String()+"."+within.Field, redact.Bounded(within.Detail, limits.ProblemBytes)
		if value, ok := within.BadValue.(string); ok {
			within.BadValue = text.Cut(value, limits.QuotedBytes)
		} else {
			within.BadValue = field.OmitValueType{}
		}
		in.errs = append(in.errs, within)
	} else if err != nil {
		wrong(err.Error())
	}
	return raw
}

// answer implements answerer.
func (r variablesRule) answer(*policy.Evaluation, proto.Message) (proto.Message, error) {
	return proto.Clone(r.response), nil
}
