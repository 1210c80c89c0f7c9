// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/hookgate/hookgate/internal/limits"
)

const (
	// contextSteps is the number of steps between two checks of the context.
	contextSteps = 1000
	// resultCost is what the result of a step takes in bytes, besides its text.
	resultCost = 32
	// A regular expression looks at each character of a text as often as it has states, about one for four characters.
	// One that the request has is compiled for each step.
	regexStates   = 4
	dynamicRegex  = limits.ConditionCharacters / regexStates
	dynamicStates = 100
)

// meter counts the steps of an evaluation: one for each, and one for each ten bytes of a text that is its result, so
// that functions are paid with their arguments. CEL's own costs are the same in kind, but counting them takes time with
// the square of the number of steps: what they bound to a tenth of a second takes minutes.
type meter struct {
	check func() error // of the context
	limit uint64
	spent uint64
	steps int
}

// step notes that a step was done, with a result that is looked at as the weight says. Without a request, CEL computes
// a constant.
func (r *Request) step(result ref.Val, w weight) {
	if r == nil {
		return
	}
	size := 0
	switch v := result.(type) {
	case types.String:
		size = len(v) * (1 + w.texts)
	case types.Bytes:
		size = len(v)
	case *object, *list: // counted as they are read
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok && w.elements {
			size = int(n)
		}
	}
	if r.spent += 1 + uint64(size/10); r.spent > r.limit {
		r.abort(fmt.Errorf("%w: more than %d", ErrCost, r.limit))
	}
	if r.steps++; r.steps%contextSteps == 0 {
		if err := r.check(); err != nil {
			r.abort(err)
		}
	}
}

// weight says what a function makes of an argument.
type weight struct {
	texts    int  // how often a text is looked at again
	elements bool // whether all elements of a list are looked at
}

// weigher is a node that has a weight.
type weigher interface{ weigh(w weight) }

func (w *weight) weigh(more weight) { *w = more }

// metered returns a node that counts its steps. Constants and literals cost nothing but their parts.
func metered(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch n := node.(type) {
	case interpreter.InterpretableConst, interpreter.InterpretableConstructor:
		return node, nil
	case interpreter.InterpretableAttribute:
		return &meteredAttribute{InterpretableAttribute: n}, nil
	case interpreter.InterpretableCall:
		for i, w := range weights(n) {
			if argument, ok := n.Args()[i].(weigher); ok {
				argument.weigh(w)
			}
		}
		return &meteredCall{InterpretableCall: n}, nil
	}
	return &meteredNode{node}, nil
}

// weights returns the weights of the first arguments of a function, where it does more than to read a text once.
func weights(call interpreter.InterpretableCall) []weight {
	if len(call.Args()) != 2 {
		return nil
	}
	switch call.Function() {
	case operators.In, operators.Equals, operators.NotEquals:
		return []weight{{elements: true}, {elements: true}}
	case overloads.Matches:
		if regex, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
			text, _ := regex.Value().(types.String)
			return []weight{{texts: len(text) / regexStates}}
		}
		return []weight{{texts: dynamicRegex}, {texts: dynamicStates}}
	}
	return nil
}

// requestOf returns the request that is evaluated, or nil.
func requestOf(vars interpreter.Activation) *Request {
	found, _ := vars.ResolveName(meterVariable)
	r, _ := found.(*Request)
	return r
}

// meteredNode counts the steps of a comprehension or of a logical operator.
type meteredNode struct{ interpreter.InterpretableV2 }

// Exec evaluates the node.
func (n *meteredNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	requestOf(frame).step(v, weight{})
	return v
}

// Eval evaluates the node.
func (n *meteredNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// meteredCall counts the steps of a function, whose result takes memory.
type meteredCall struct {
	interpreter.InterpretableCall
	weight
}

// Exec evaluates the call.
func (n *meteredCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableCall.Exec(frame)
	r := requestOf(frame)
	if r == nil {
		return v
	}
	r.step(v, n.weight)
	bytes := resultCost
	if s, ok := v.(types.String); ok {
		bytes += len(s)
	}
	r.take(bytes)
	return v
}

// Eval evaluates the call.
func (n *meteredCall) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// meteredAttribute counts the steps of a variable and the members that are selected of it, as one.
type meteredAttribute struct {
	interpreter.InterpretableAttribute
	weight
}

// AddQualifier selects a member.
func (n *meteredAttribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	_, err := n.InterpretableAttribute.AddQualifier(q)
	return n, err
}

// Exec evaluates the attribute.
func (n *meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableAttribute.Exec(frame)
	requestOf(frame).step(v, n.weight)
	return v
}

// Eval evaluates the attribute.
func (n *meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}
