// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

const (
	// CostLimit bounds the work that one evaluation of one condition may do, in CEL's units of cost: about one for each
	// step, and for each ten characters that a string function looks at. It is the limit that Kubernetes has for one
	// expression, and stands for about a tenth of a second.
	CostLimit = 1_000_000

	// MaxExpression is the most characters that an expression may have.
	MaxExpression = 4096

	// variable is what expressions call the request.
	variable = "request"
	// interruptEvery is after how many steps of a comprehension the context is looked at.
	interruptEvery = 100
)

// The ways in which an evaluation goes wrong. EvaluationError wraps one of them.
var (
	// ErrCost is that of an expression that would cost more than CostLimit.
	ErrCost = errors.New("the expression costs too much for this request")
	// ErrNotBool is that of an expression whose value is something else than true or false.
	ErrNotBool = errors.New("the expression is neither true nor false for this request")
	// ErrEvaluation is that of an expression that fails, for example because it reads a member that is not there.
	ErrEvaluation = errors.New("the expression fails for this request")
)

// Condition is one condition as an operator wrote it.
type Condition struct {
	Name       string
	Expression string
}

// Compiler compiles conditions. It is safe for concurrent use.
type Compiler struct {
	env *cel.Env
}

// NewCompiler returns a compiler for the standard language, with the macro has(), optional values (request.?settings) and
// comparisons of numbers of different types.
func NewCompiler() (*Compiler, error) {
	env, err := cel.NewEnv(
		cel.Variable(variable, cel.DynType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ExtendedValidations(), // literal durations, times and regular expressions
		cel.ParserExpressionSizeLimit(MaxExpression),
	)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return &Compiler{env: env}, nil
}

// CompileError is what is wrong with one condition.
type CompileError struct {
	Index   int // of the condition
	Message string
}

// Error returns what is wrong, and where in the expression.
func (e *CompileError) Error() string { return e.Message }

// Compile compiles conditions, which all have to be true. Its errors are *CompileError, one for each condition that is wrong;
// with any, there is no result. Without conditions the result is nil.
func (c *Compiler) Compile(conditions []Condition) (*Conditions, []*CompileError) {
	if len(conditions) == 0 {
		return nil, nil
	}
	compiled := &Conditions{conditions: make([]condition, len(conditions))}
	var errs []*CompileError
	for i, from := range conditions {
		program, err := c.compile(from.Expression)
		if err != nil {
			errs = append(errs, &CompileError{Index: i, Message: err.Error()})
			continue
		}
		compiled.conditions[i] = condition{name: from.Name, program: program}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return compiled, nil
}

func (c *Compiler) compile(expression string) (cel.Program, error) {
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		var all []string
		for _, e := range issues.Errors() {
			// CEL counts columns from 0, and editors from 1.
			all = append(all, fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
		}
		return nil, errors.New(strings.Join(all, "; "))
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("must be true or false, and is of type %s", cel.FormatCELType(t))
	}
	// Optimized, regular expressions and lists that the expression spells out are made once.
	program, err := c.env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(CostLimit), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, err
	}
	return program, nil
}

// Conditions are the compiled conditions of one policy.
type Conditions struct {
	conditions []condition
}

type condition struct {
	name    string
	program cel.Program
}

// EvaluationError is what went wrong with one condition for one request.
type EvaluationError struct {
	Condition string // its name
	Kind      error  // ErrCost, ErrNotBool or ErrEvaluation
	Cause     error  // what CEL says, which may quote the request; may be nil
}

// Error returns a text that is the same for the same condition and kind. What CEL says depends on the request and, where
// it walks a map, on chance, so it is in Cause.
func (e *EvaluationError) Error() string {
	return fmt.Sprintf("match condition %q: %v", e.Condition, e.Kind)
}

// Unwrap returns the kind.
func (e *EvaluationError) Unwrap() error { return e.Kind }

// Match tells whether all conditions are true for a request, the JSON value as Decode returns it. One that is false decides,
// even if another cannot be evaluated; without one, the first that cannot be evaluated is the error, an *EvaluationError, or
// that of ctx if it is done.
func (c *Conditions) Match(ctx context.Context, request any) (bool, error) {
	activation := activation{request: request}
	var first error
	for i := range c.conditions {
		matches, err := c.conditions[i].match(ctx, &activation)
		switch {
		case err != nil && ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			if first == nil {
				first = err
			}
		case !matches:
			return false, nil
		}
	}
	return first == nil, first
}

func (c *condition) match(ctx context.Context, a *activation) (bool, error) {
	value, _, err := c.program.ContextEval(ctx, a)
	if err != nil {
		kind := ErrEvaluation
		var exceeded interpreter.EvalCancelledError
		if errors.As(err, &exceeded) && exceeded.Cause == interpreter.CostLimitExceeded {
			kind = ErrCost
		}
		return false, &EvaluationError{Condition: c.name, Kind: kind, Cause: err}
	}
	matches, ok := value.(types.Bool)
	if !ok {
		return false, &EvaluationError{Condition: c.name, Kind: ErrNotBool, Cause: fmt.Errorf("the value is of type %s", value.Type().TypeName())}
	}
	return bool(matches), nil
}

// activation resolves the one variable.
type activation struct {
	request any
}

var _ interpreter.Activation = (*activation)(nil)

// ResolveName returns the request.
func (a *activation) ResolveName(name string) (any, bool) {
	if name == variable {
		return a.request, true
	}
	return nil, false
}

// Parent returns nothing.
func (a *activation) Parent() interpreter.Activation { return nil }
