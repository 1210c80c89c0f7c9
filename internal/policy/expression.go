// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/hookgate/hookgate/hook"
)

// Kind is the kind of value that an expression has.
type Kind int

// The kinds of values.
const (
	Bool Kind = iota
	String
	JSON // any value that JSON can express
)

// The variables that expressions may have besides request, each of which is set before an evaluation.
const (
	// NowVariable is the time of the call.
	NowVariable = "now"
)

// Expression is a compiled expression of a rule. It is immutable, and safe for concurrent use.
type Expression struct {
	// Where is the place of the expression in its rule, such as spec.hold[0].unless. Errors begin with it.
	Where string

	kind    Kind
	program cel.Program
}

// Expression compiles an expression for requests of a hook, with a value of the kind. variables are the names of its
// variables besides request, of any JSON; now is the time. The error has the positions of its mistakes.
func (c *Compiler) Expression(
	t *Types, h hook.GroupHook, where, source string, kind Kind, variables ...string,
) (*Expression, error) {
	request, ok := t.requests[h]
	if !ok {
		return nil, fmt.Errorf("no hook %s is known", h.Hook)
	}
	env, err := request()
	if err != nil {
		return nil, err
	}
	declared := make([]cel.EnvOption, len(variables))
	for i, name := range variables {
		of := cel.DynType
		if name == NowVariable {
			of = cel.TimestampType
		}
		declared[i] = cel.Variable(name, of)
	}
	typed, err := env.Extend(declared...)
	if err != nil {
		return nil, err
	}
	if _, wrong := compileAs(typed, source, kind); wrong != nil {
		return nil, errors.New(wrong.text)
	}
	// A program reads members as they are in JSON, whatever their types are.
	untyped, err := c.env.Extend(declared...)
	if err != nil {
		return nil, err
	}
	ast, wrong := compileAs(untyped, source, kind)
	if wrong != nil {
		return nil, errors.New(wrong.text)
	}
	program, err := programOf(untyped, ast)
	if err != nil {
		return nil, err
	}
	return &Expression{Where: where, kind: kind, program: program}, nil
}

// Evaluation evaluates the expressions of one rule for one request. Together they have TotalCostLimit and ReadLimit. It
// belongs to one goroutine.
type Evaluation struct {
	request   *Request
	left      uint64
	variables map[string]any
}

// Evaluate begins an evaluation of expressions for r, until ctx is done.
func (r *Request) Evaluate(ctx context.Context) *Evaluation {
	r.begin(ctx)
	return &Evaluation{request: r, left: TotalCostLimit, variables: map[string]any{}}
}

// Set sets a variable to the value of a valid JSON text, which must not change.
func (v *Evaluation) Set(name string, text []byte) { v.variables[name] = v.request.value(text) }

// SetTime sets a variable to a time.
func (v *Evaluation) SetTime(name string, at time.Time) {
	v.variables[name] = types.Timestamp{Time: at}
}

// Bool returns the value of an expression of kind Bool. Its error is an *EvaluationError, one of the request's Guard, or
// that of the context.
func (v *Evaluation) Bool(e *Expression) (bool, error) {
	value, err := v.value(e)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, wrongKind(e, ErrNotBool, value)
	}
	return bool(b), nil
}

// String returns the value of an expression of kind String. Its errors are those of Bool.
func (v *Evaluation) String(e *Expression) (string, error) {
	value, err := v.value(e)
	if err != nil {
		return "", err
	}
	s, ok := value.(types.String)
	if !ok {
		return "", wrongKind(e, ErrNotString, value)
	}
	return string(s), nil
}

// JSON returns the value of an expression as JSON. Its errors are those of Bool.
func (v *Evaluation) JSON(e *Expression) ([]byte, error) {
	value, err := v.value(e)
	if err != nil {
		return nil, err
	}
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, wrongKind(e, ErrNotJSON, value)
	}
	return json.Marshal(native)
}

func wrongKind(e *Expression, kind error, value ref.Val) error {
	cause := fmt.Errorf("the value is of type %s", value.Type().TypeName())
	return &EvaluationError{Where: e.Where, Kind: kind, Cause: cause}
}

// value evaluates an expression.
func (v *Evaluation) value(e *Expression) (ref.Val, error) {
	r := v.request
	r.spent, r.limit, r.err = 0, min(CostLimit, v.left), nil
	value, _, err := e.program.Eval(evaluated{activation{r}, v.variables})
	v.left -= min(v.left, r.spent)
	if err == nil {
		return value, nil
	}
	if over := r.check(); over != nil {
		return nil, over
	}
	kind, err := r.failure(err)
	if kind == nil {
		return nil, err
	}
	return nil, &EvaluationError{Where: e.Where, Kind: kind, Cause: err}
}

// evaluated resolves the variables of a rule.
type evaluated struct {
	activation
	variables map[string]any
}

var _ interpreter.Activation = evaluated{}

// ResolveName returns the value of a variable.
func (a evaluated) ResolveName(name string) (any, bool) {
	if value, ok := a.variables[name]; ok {
		return value, true
	}
	return a.activation.ResolveName(name)
}

// compileAs compiles an expression whose value may be of the kind.
func compileAs(env *cel.Env, source string, kind Kind) (*cel.Ast, *diagnostics) {
	ast, wrong := compileIn(env, source)
	if wrong != nil {
		return nil, wrong
	}
	of := ast.OutputType()
	wanted := map[Kind][]*cel.Type{Bool: {cel.BoolType}, String: {cel.StringType}}[kind]
	if kind == JSON || of.IsExactType(cel.DynType) || slices.ContainsFunc(wanted, of.IsExactType) {
		return ast, nil
	}
	must := map[Kind]string{Bool: "true or false", String: "a text"}[kind]
	return nil, &diagnostics{text: fmt.Sprintf("must be %s, and is of type %s", must, cel.FormatCELType(of))}
}
