// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	kubernetes "k8s.io/apiserver/pkg/cel/library"
)

// precision is the largest number of digits that format writes after the point.
const precision = 100

// libraries returns the functions that expressions of Kubernetes have besides those of CEL, without those that ask the
// API server. Their versions are fixed, so that an expression means the same after an update of the libraries.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		ext.Strings(ext.StringsVersion(2), ext.StringsMaxPrecision(precision)),
		ext.Sets(),
		ext.Lists(ext.ListsVersion(3)),
		ext.TwoVarComprehensions(),
		kubernetes.Lists(kubernetes.ListsVersion(1)),
		kubernetes.URLs(),
		kubernetes.Regex(),
		kubernetes.Quantity(),
		kubernetes.IP(),
		kubernetes.CIDR(),
		kubernetes.Format(),
		kubernetes.SemverLib(kubernetes.SemverVersion(1)),
	}
}

// weighed are the functions whose work is weighed before they are called, by name: those of libraries, and those of CEL
// that do more than to read their arguments once.
type weighed map[string]*functions.Overload

// weighedOf returns the weighed functions of an environment.
func weighedOf(env *cel.Env) (weighed, error) {
	standard, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	others := standard.Functions()
	delete(others, overloads.Matches)
	all := weighed{}
	for name, f := range env.Functions() {
		if others[name] != nil && !isOperator(name) {
			continue
		}
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.Operator == name { // it finds the overload
				all[name] = b
			}
		}
		if all[name] == nil {
			return nil, fmt.Errorf("the function %s has no implementation", name)
		}
	}
	return all, nil
}

// errNoRegex means that a literal is no regular expression.
var errNoRegex = errors.New("not a regular expression")

// call returns a node for a call of a function that is weighed, or nil for others.
func (w weighed) call(c interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name := c.Function()
	f := w[name]
	if f == nil {
		return nil, nil
	}
	n := &weighedCall{id: c.ID(), args: c.Args(), whole: !isOperator(name), cost: costOf(name)}
	n.call = func(args []ref.Val) ref.Val { return invoke(name, f, args) }
	if len(n.args) < 2 {
		return n, nil
	}
	literal, ok := n.args[1].(interpreter.InterpretableConst)
	if !ok {
		return n, nil
	}
	switch pattern, ok := literal.Value().(types.String); {
	case name == operators.In:
		return nil, nil // CEL makes a set of the list
	case ok && isRegex(name):
		regex, err := regexp.Compile(string(pattern))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRegex, err)
		}
		states, err := statesOf(string(pattern))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRegex, err)
		}
		n.cost = func(_ *Request, args []ref.Val) cost { return matchCost(args[0], states) }
		n.call = func(args []ref.Val) ref.Val { return find(name, regex, args) }
	}
	return n, nil
}

// isOperator reports whether a function is an operator of CEL that is weighed.
func isOperator(name string) bool {
	return name == operators.Equals || name == operators.NotEquals || name == operators.In
}

// isRegex reports whether the second argument of a function is a regular expression.
func isRegex(name string) bool {
	return name == overloads.Matches || name == "find" || name == "findAll"
}

// statesOf returns the number of states of a regular expression.
func statesOf(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// find is the call of a function with a regular expression that is compiled.
func find(name string, regex *regexp.Regexp, args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return decls.MaybeNoSuchOverload(name, args...)
	}
	switch name {
	case overloads.Matches:
		return types.Bool(regex.MatchString(string(s)))
	case "find":
		return types.String(regex.FindString(string(s)))
	}
	most := types.Int(-1)
	if len(args) > 2 {
		if most, ok = args[2].(types.Int); !ok {
			return decls.MaybeNoSuchOverload(name, args...)
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, regex.FindAllString(string(s), int(most)))
}

// invoke calls the overload of a function that its arguments need.
func invoke(name string, f *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case name == operators.Equals: // which is a node in CEL, and no function
		return types.Equal(args[0], args[1])
	case name == operators.NotEquals:
		return types.Bool(types.Equal(args[0], args[1]) != types.True)
	case f.OperandTrait != 0 && !args[0].Type().HasTrait(f.OperandTrait):
	case len(args) == 1 && f.Unary != nil:
		return f.Unary(args[0])
	case len(args) == 2 && f.Binary != nil:
		return f.Binary(args[0], args[1])
	case f.Function != nil:
		return f.Function(args...)
	}
	return decls.MaybeNoSuchOverload(name, args...)
}

// weighedCall calls a function after its work was paid.
type weighedCall struct {
	id   int64
	args []interpreter.InterpretableV2
	// whole is whether lists of the request are read at once, because the function reads elements more than once.
	whole bool
	cost  func(r *Request, args []ref.Val) cost
	call  func(args []ref.Val) ref.Val
}

var _ interpreter.InterpretableV2 = (*weighedCall)(nil)

// ID returns the place of the call in the expression.
func (n *weighedCall) ID() int64 { return n.id }

// Exec evaluates the call.
func (n *weighedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	r := requestOf(frame)
	if r == nil { // CEL computes a constant
		r = &Request{}
		r.limit, r.check = CostLimit, func() error { return nil }
	}
	first := len(r.args)
	defer func() { r.args = r.args[:first] }()
	for _, arg := range n.args {
		v := arg.Exec(frame)
		if types.IsUnknownOrError(v) {
			return v
		}
		if l, ok := v.(*list); ok && n.whole {
			v = l.whole()
		}
		r.args = append(r.args, v)
	}
	args := r.args[first:]
	r.pay(n.cost(r, args))
	v := n.call(args)
	r.step(v)
	return v
}

// Eval evaluates the call.
func (n *weighedCall) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}
