// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/hookgate/hookgate/hook"
)

// Kind is the kind of value that an expression has.
type Kind int

// The kinds of values.
const (
	Bool Kind = iota
	String
	JSON   // any value that JSON can express
	Object // one that is a JSON object
)

// The variables that expressions may have besides request, each of which is set before an evaluation.
const (
	// NowVariable is the time of the call.
	NowVariable = "now"
	// ItemVariable is an item of the request, for hooks whose requests have items.
	ItemVariable = "item"
)

// Expression is a compiled expression of a rule. It is immutable, and safe for concurrent use.
type Expression struct {
	// Where is the place of the expression in its rule, such as spec.hold[0].unless. Errors begin with it.
	Where string
	// TrueIfMissing and FalseIfMissing report whether the expression is true, or false, just because it compares
	// x.orValue("") with a member that is empty, while x is missing.
	TrueIfMissing, FalseIfMissing bool

	kind    Kind
	program cel.Program
}

// Expression compiles an expression for requests of a hook, with a value of the kind. variables are the names of its
// variables besides request, of any JSON; now is the time, item has the type of the hook's items, and params.x declares
// the member x of params. The error has the positions of its mistakes.
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
	declared, anything, others := declareParams(env, variables)
	for _, name := range others {
		of := t.variable(h, name)
		declared = append(declared, cel.Variable(name, of))
		if name != NowVariable {
			of = cel.DynType
		}
		anything = append(anything, cel.Variable(name, of))
	}
	if kind == Bool || kind == String {
		declared = append(declared, alike()) // JSON has objects and lists whose values are of different types
	}
	typed, err := env.Extend(declared...)
	if err != nil {
		return nil, err
	}
	if _, wrong := compileAs(typed, source, kind); wrong != nil {
		return nil, errors.New(wrong.text)
	}
	// A program reads members as they are in JSON, whatever their types are.
	untyped, err := c.env.Extend(anything...)
	if err != nil {
		return nil, err
	}
	ast, wrong := compileAs(untyped, source, kind)
	if wrong != nil {
		return nil, errors.New(wrong.text)
	}
	program, err := c.program(untyped, ast)
	if err != nil {
		return nil, err
	}
	root := ast.NativeRep().Expr()
	return &Expression{
		Where: where, TrueIfMissing: ifMissing(root, true), FalseIfMissing: ifMissing(root, false),
		kind: kind, program: program,
	}, nil
}

// Evaluation evaluates the expressions of one rule for one request. Together they have TotalCostLimit and ReadLimit. It
// belongs to one goroutine.
type Evaluation struct {
	request   *Request
	left      uint64
	variables map[string]any // a func() ref.Val makes the value when an expression first reads it
	items     *iterator
	item      int // the number of items that were read
}

// Evaluate begins an evaluation of expressions for r, until ctx is done.
func (r *Request) Evaluate(ctx context.Context) *Evaluation {
	r.begin(ctx)
	return &Evaluation{request: r, left: TotalCostLimit, variables: map[string]any{}}
}

// Guard returns what bounds the work on the request.
func (v *Evaluation) Guard() Guard { return v.request.Guard }

// Set sets a variable to the value of a valid JSON text, which must not change while the variable has it.
func (v *Evaluation) Set(name string, text []byte) {
	v.variables[name] = func() ref.Val { return v.request.value(text) }
}

// SetItem sets ItemVariable to an item of the request by its index, which is higher than that of the item before.
func (v *Evaluation) SetItem(index int) {
	v.variables[ItemVariable] = func() ref.Val {
		if v.items == nil {
			request, _ := v.request.root.(*object)
			items, _ := request.Get(types.String("items")).(*list)
			if items == nil {
				return types.NewErr("the request has no items")
			}
			v.items, _ = items.Iterator().(*iterator)
		}
		for ; v.item < index; v.item++ {
			v.items.Next()
		}
		v.item++
		if item := v.items.Next(); item != nil {
			return item
		}
		return types.NewErr("the request has no item %d", index)
	}
}

// SetTime sets a variable to a time.
func (v *Evaluation) SetTime(name string, at time.Time) {
	v.variables[name] = types.Timestamp{Time: at}
}

// Time returns the time to which a variable was set.
func (v *Evaluation) Time(name string) time.Time {
	at, _ := v.variables[name].(types.Timestamp)
	return at.Time
}

// Bool returns the value of an expression of kind Bool. Its error is an *EvaluationError, one of the request's Guard,
// or that of the context.
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

// JSON returns the value of an expression of kind JSON or Object as JSON: integers as they are, members of objects in
// the order of their names, and what is read from the request or a variable as it is written there. Its errors are
// those of Bool.
func (v *Evaluation) JSON(e *Expression) ([]byte, error) {
	value, err := v.value(e)
	if err != nil {
		return nil, err
	}
	if _, ok := value.(traits.Mapper); !ok && e.kind == Object {
		return nil, wrongKind(e, ErrNotObject, value)
	}
	v.begin()
	text, err := encode(v.request, value)
	v.left -= min(v.left, v.request.spent)
	if err != nil {
		return nil, v.failure(e, err)
	}
	return text, nil
}

func wrongKind(e *Expression, kind error, value ref.Val) error {
	cause := fmt.Errorf("the value is of type %s", value.Type().TypeName())
	return &EvaluationError{Where: e.Where, Kind: kind, Cause: cause}
}

// value evaluates an expression.
func (v *Evaluation) value(e *Expression) (ref.Val, error) {
	v.begin()
	value, _, err := e.program.Eval(evaluated{activation{v.request}, v.variables})
	v.left -= min(v.left, v.request.spent)
	if err != nil {
		return nil, v.failure(e, err)
	}
	return value, nil
}

// begin begins what may cost CostLimit, or what is left of TotalCostLimit.
func (v *Evaluation) begin() {
	r := v.request
	r.spent, r.limit, r.err = 0, min(CostLimit, v.left), nil
}

// failure returns the error of an expression that has failed with err.
func (v *Evaluation) failure(e *Expression, err error) error {
	if over := v.request.check(); over != nil {
		return over
	}
	kind, cause := v.request.failure(err)
	if kind == nil {
		return cause
	}
	if errors.Is(err, ErrNotJSON) {
		kind = err
	}
	return &EvaluationError{Where: e.Where, Kind: kind, Cause: cause}
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
		if read, ok := value.(func() ref.Val); ok {
			value = read()
			a.variables[name] = value
		}
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
	isObject := of.Kind() == types.MapKind || of.Kind() == types.StructKind
	if kind == JSON || kind == Object && isObject || of.IsExactType(cel.DynType) ||
		slices.ContainsFunc(wanted, of.IsExactType) {
		return ast, nil
	}
	must := map[Kind]string{Bool: "true or false", String: "a text", Object: "an object"}[kind]
	return nil, &diagnostics{text: fmt.Sprintf("must be %s, but is of type %s", must, cel.FormatCELType(of))}
}
