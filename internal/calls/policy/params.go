// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// ParamsVariable is an object with what a rule reads besides the request. Each of its members is declared by a variable
// such as params.freeze, and is any JSON. Other members are mistakes.
const ParamsVariable = "params"

// declareParams returns the declarations of ParamsVariable with the members that variables declare, for the types of
// env and for an environment without types, and the other variables. Without members, there is no such variable.
func declareParams(env *cel.Env, variables []string) (typed, untyped []cel.EnvOption, others []string) {
	members := map[string]*types.Type{}
	for _, name := range variables {
		if of, member, ok := strings.Cut(name, "."); ok && of == ParamsVariable {
			members[member] = types.DynType
		} else {
			others = append(others, name)
		}
	}
	if len(members) == 0 {
		return nil, nil, others
	}
	p := &provider{
		Provider: env.CELTypeProvider(), objects: map[string]map[string]*types.Type{ParamsVariable: members},
	}
	return []cel.EnvOption{
		cel.CustomTypeProvider(p), cel.Variable(ParamsVariable, types.NewObjectType(ParamsVariable)),
	}, []cel.EnvOption{cel.Variable(ParamsVariable, cel.DynType)}, others
}
