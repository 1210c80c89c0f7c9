// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/contract/variables"
)

// maxVariables is the number of variables in a ClusterClass's status, into which Cluster API writes what it discovers.
const maxVariables = 1000

var variableChecks = []Check{
	{
		ID: "variables.names", Level: Must,
		Rule: "There are at most 1000 variables. Their names differ, have at most 256 characters, contain no dot, " +
			"and are not \"builtin\".",
		Source: classRules + "validateClusterClassVariableName; " + classTypes + "ClusterClassStatusVariable",
		run: func(ctx context.Context, s *session, v *verdict) {
			seen := map[*exchange]map[string]bool{}
			eachVariable(func(x *exchange, d variableDefinition) string {
				if seen[x] == nil {
					seen[x] = map[string]bool{}
				}
				err := variables.CheckName(d.Name)
				switch {
				case err != nil:
					return err.Error()
				case len(seen[x]) == maxVariables:
					return fmt.Sprintf("there are more than %d variables", maxVariables)
				case seen[x][d.Name]:
					return fmt.Sprintf("the name %q occurs twice", d.Name)
				}
				seen[x][d.Name] = true
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "variables.schemas", Level: Must,
		Rule: "The schema of a variable is a structural schema of the subset of OpenAPI that Cluster API " +
			"accepts. The schema's CEL rules compile and are not too costly. The variable's labels and annotations are valid.",
		Source: classRules + "validateRootSchema",
		run: eachVariable(func(_ *exchange, d variableDefinition) string {
			_, err := variables.Parse(d.Schema.OpenAPIV3Schema)
			if m := d.DeprecatedV1Beta1Metadata; err == nil {
				err = variables.CheckMetadata(field.NewPath("deprecatedV1Beta1Metadata"), m.Labels, m.Annotations)
			}
			if err != nil {
				return fmt.Sprintf("variable %q: %s", d.Name, err)
			}
			return ""
		}),
	},
	{
		ID: "variables.values", Level: Must,
		Rule:   "The schema of a variable accepts its own default, example and enum values.",
		Source: classRules + "validateSchema",
		run: func(ctx context.Context, s *session, v *verdict) {
			eachVariable(func(_ *exchange, d variableDefinition) string {
				schema, err := variables.Parse(d.Schema.OpenAPIV3Schema)
				if err != nil {
					return "" // for variables.schemas
				}
				if err := schema.CheckValues(ctx); err != nil {
					return fmt.Sprintf("variable %q: %s", d.Name, err)
				}
				return ""
			})(ctx, s, v)
		},
	},
}

// eachVariable returns a run that reports the problems that check finds in the variables of all handlers of
// DiscoverVariables.
func eachVariable(check func(*exchange, variableDefinition) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		found := 0
		for _, h := range s.working(ctx, v, "DiscoverVariables") {
			x := s.base(ctx, h)
			for i, d := range x.parsed.Variables {
				found++
				if problem := check(x, d); problem != "" {
					v.failf(x, "variables[%d]: %s", i, problem)
				}
			}
		}
		if found == 0 && v.notFor == "" {
			v.skipf("the realistic request got no variables")
		}
	}
}
