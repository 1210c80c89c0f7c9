// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	kubernetes "k8s.io/apiserver/pkg/cel/library"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// CostLimit bounds one evaluation of one condition: one for each step, and one for each ten bytes of a text that a
	// step reads. It is Kubernetes' limit for an expression, about a tenth of a second.
	CostLimit = limits.ConditionCost

	// TotalCostLimit bounds the conditions of one policy for one request together. It equals Kubernetes' limit for the
	// match conditions of a webhook.
	TotalCostLimit = limits.PolicyCost

	// variable is the name of the request in expressions.
	variable = "request"
	// meterVariable is the name by which steps find their Request. No expression can have it.
	meterVariable = "@meter"
)

// The kinds of evaluation failures. EvaluationError wraps one of them.
var (
	// ErrCost means that the expression would cost more than CostLimit, or what is left of TotalCostLimit.
	ErrCost = errors.New("the expression costs too much for this request")
	// ErrNotBool means that the value of the expression is not a boolean.
	ErrNotBool = errors.New("the expression is neither true nor false for this request")
	// ErrNotString means that the value of an expression of a rule is not a text.
	ErrNotString = errors.New("for this request, the value of the expression is not text")
	// ErrNotObject means that the value of an expression of a rule is not a JSON object.
	ErrNotObject = errors.New("for this request, the value of the expression is not an object")
	// ErrNotJSON means that the value of an expression of a rule has no form in JSON, such as a type.
	ErrNotJSON = errors.New("the value of the expression cannot be written as JSON")
	// ErrEvaluation means that the expression fails, for example because it reads an absent member.
	ErrEvaluation = errors.New("the expression fails for this request")
	// ErrTooMany means that the expression selects a member of an object that has more than limits.Elements of them.
	ErrTooMany = fmt.Errorf("the request has an object with more than %d members", limits.Elements)
)

// Condition is a condition as the operator wrote it.
type Condition struct {
	Name       string
	Expression string
}

// Compiler compiles conditions. It is safe for concurrent use.
type Compiler struct {
	env        *cel.Env
	conditions *cel.Env
	weighed    weighed
}

// NewCompiler returns a Compiler for CEL with optional values (request.?settings), comparisons between numbers of
// different types, and the libraries of Kubernetes.
func NewCompiler() (*Compiler, error) {
	env, err := cel.NewEnv(append(options(), cel.Variable(variable, cel.DynType))...)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	conditions, err := env.Extend(alike())
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	weighed, err := weighedOf(env)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return &Compiler{env: env, conditions: conditions, weighed: weighed}, nil
}

// options returns the language of expressions: that of Kubernetes, without its authorizer.
func options() []cel.EnvOption {
	return append(libraries(),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		cel.ParserExpressionSizeLimit(limits.ConditionCharacters),
	)
}

// alike returns the rule that the values of a literal list or map are of one type.
func alike() cel.EnvOption { return cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()) }

// CompileError describes the mistakes in one condition.
type CompileError struct {
	Index   int // of the condition in the argument of Compile
	Message string
}

// Error returns the mistakes with their positions in the expression.
func (e *CompileError) Error() string { return e.Message }

// Compile compiles conditions, all of which have to be true. It returns either Conditions or one error for each
// condition with mistakes. Without conditions it returns nil.
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
		into := &compiled.conditions[i]
		into.Condition, into.program = from, program
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return compiled, nil
}

// diagnostics holds the mistakes in an expression.
type diagnostics struct {
	text         string
	line, column int // of the first
}

// String returns all mistakes with their positions.
func (m *diagnostics) String() string { return m.text }

// after reports whether m begins behind o.
func (m *diagnostics) after(o *diagnostics) bool {
	return m.line > o.line || m.line == o.line && m.column > o.column
}

// compileIn compiles an expression as far as its types are known.
func compileIn(env *cel.Env, expression string) (*cel.Ast, *diagnostics) {
	// Env.Compile does the same, and makes a text of each mistake with the square of its column in bytes.
	ast, issues := env.Parse(expression)
	if len(issues.Errors()) == 0 {
		if n := nesting(celast.NavigateAST(ast.NativeRep())); n > limits.ExpressionNesting {
			return nil, &diagnostics{text: fmt.Sprintf("must nest lists, maps, macros such as map(), and optional "+
				"values at most %d deep, but nests them %d deep", limits.ExpressionNesting, n)}
		}
		ast, issues = env.Check(ast)
	}
	if errs := issues.Errors(); len(errs) > 0 {
		all := make([]string, len(errs))
		for i, e := range errs {
			// CEL counts columns from 0, editors count from 1.
			all[i] = fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message)
		}
		return nil, &diagnostics{strings.Join(all, "; "), errs[0].Location.Line(), errs[0].Location.Column()}
	}
	return ast, nil
}

// nesting returns how deep an expression nests what has types that are made of others. CEL takes time with the fourth
// power of it.
func nesting(e celast.NavigableExpr) int {
	most := 0
	for _, part := range e.Children() {
		most = max(most, nesting(part))
	}
	switch e.Kind() {
	case celast.ListKind, celast.MapKind, celast.ComprehensionKind:
		most++
	case celast.CallKind:
		name := e.AsCall().FunctionName()
		if strings.HasPrefix(name, "optional") || name == "of" || name == "ofNonZeroValue" || name == "type" {
			most++
		}
	}
	return most
}

func (c *Compiler) compile(expression string) (cel.Program, error) {
	ast, wrong := compileAs(c.conditions, expression, Bool)
	if wrong != nil {
		return nil, errors.New(wrong.text)
	}
	return c.program(c.conditions, ast)
}

// unknownCost is less than what CEL takes for the least cost of a function if it depends on a request.
const unknownCost = 1 << 50

// program returns the program of an expression, whose steps are counted. env extends that of c by variables. An
// expression whose literal lists alone cost more than CostLimit is an error. What others cost is not known before: JSON
// has no limits for its lists.
func (c *Compiler) program(env *cel.Env, ast *cel.Ast) (cel.Program, error) {
	cost, err := env.EstimateCost(ast, &kubernetes.CostEstimator{})
	if err != nil {
		return nil, err
	}
	if cost.Min > CostLimit && cost.Min < unknownCost {
		return nil, fmt.Errorf("costs at least %d, but the limit is %d: use shorter lists, or nest fewer of them",
			cost.Min, uint64(CostLimit))
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize), // makes literal lists and regular expressions once
		cel.CustomDecoratorV2(c.weighed.metered),
	)
	if err != nil {
		return nil, err
	}
	return program, nil
}

// Conditions holds the compiled conditions of one policy.
type Conditions struct {
	conditions []condition
}

type condition struct {
	Condition
	program cel.Program
	checked sync.Map // the *diagnostics for each hook that was asked for
}

// all returns the conditions of c, which may be nil.
func (c *Conditions) all() []condition {
	if c == nil {
		return nil
	}
	return c.conditions
}

// EvaluationError is the failure to evaluate one condition, or one expression of a rule, for one request.
type EvaluationError struct {
	Condition string // its name
	Where     string // the place of the expression, if it is one of a rule
	Kind      error  // ErrCost, ErrNotBool, ErrEvaluation or ErrTooMany
	Cause     error  // CEL's own error, which may quote the request
}

// Error returns the same text for the same condition and request. For ErrEvaluation, it has the beginning of CEL's own
// text, such as "no such key: paused".
func (e *EvaluationError) Error() string {
	where := e.Where
	if where == "" {
		where = fmt.Sprintf("match condition %q", e.Condition)
	}
	if e.Kind == ErrEvaluation { //nolint:errorlint // Kind is one of the errors above
		return fmt.Sprintf("%s: %v: %s", where, e.Kind, text.Cut(e.Cause.Error(), limits.QuotedBytes))
	}
	return fmt.Sprintf("%s: %v", where, e.Kind)
}

// Unwrap returns the kind.
func (e *EvaluationError) Unwrap() error { return e.Kind }

// Match reports whether all conditions are true for a request. Its errors are those of Unmet.
func (c *Conditions) Match(ctx context.Context, request *Request) (bool, error) {
	unmet, err := c.Unmet(ctx, request)
	return unmet == nil && err == nil, err
}

// Unmet returns the first condition that is false for a request, or nil if all are true. A false condition decides even
// if another one cannot be evaluated, unless those before it have spent TotalCostLimit or ReadLimit. Otherwise Unmet
// returns an *EvaluationError for the first condition that cannot be evaluated, an error of the request's Guard, or
// ctx.Err() if ctx is done.
func (c *Conditions) Unmet(ctx context.Context, request *Request) (*Condition, error) {
	request.begin(ctx)
	var first error
	left := uint64(TotalCostLimit)
	for i := range c.conditions {
		request.spent, request.limit, request.err = 0, min(CostLimit, left), nil
		matches, err := c.conditions[i].match(request)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case request.err != nil && !errors.Is(err, ErrCost), left < CostLimit && request.spent > left,
			request.read > ReadLimit:
			return nil, cmp.Or(first, err)
		case err != nil:
			if first == nil {
				first = err
			}
		case !matches:
			return &c.conditions[i].Condition, nil
		}
		left -= min(left, request.spent)
	}
	return nil, first
}

// match returns the value of the condition.
func (c *condition) match(r *Request) (bool, error) {
	value, _, err := c.program.Eval(activation{r})
	if err != nil {
		kind, err := r.failure(err)
		if kind == nil {
			return false, err
		}
		return false, &EvaluationError{Condition: c.Name, Kind: kind, Cause: err}
	}
	b, ok := value.(types.Bool)
	if !ok {
		cause := fmt.Errorf("the value is of type %s", value.Type().TypeName())
		return false, &EvaluationError{Condition: c.Name, Kind: ErrNotBool, Cause: cause}
	}
	return bool(b), nil
}

// failure returns the kind of an evaluation that has failed with err, and its cause. Without a kind, the cause is the
// error of the Guard.
func (r *Request) failure(err error) (kind, cause error) {
	switch {
	case errors.Is(r.err, ErrCost):
		return ErrCost, r.err
	case errors.Is(r.err, ErrTooMany):
		return ErrTooMany, r.err
	case r.err != nil:
		return nil, r.err
	}
	return ErrEvaluation, err
}

// activation resolves the variable request.
type activation struct{ *Request }

var _ interpreter.Activation = activation{}

// ResolveName returns the JSON of the request, and the Request.
func (a activation) ResolveName(name string) (any, bool) {
	switch name {
	case variable:
		return a.root, true
	case meterVariable:
		return a.Request, true
	}
	return nil, false
}

// Parent returns nil.
func (activation) Parent() interpreter.Activation { return nil }
