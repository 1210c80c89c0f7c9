// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// contextSteps is the number of steps between two checks of the context.
	contextSteps = 1000
	// resultCost is what the result of a step takes in bytes, besides its text.
	resultCost = 32
)

// meter counts the steps of an evaluation: one for each, and one for each ten bytes of a text that is its result, so
// that functions that read their arguments once are paid with them. Others are weighed. CEL's own costs are the same in
// kind, but counting them takes time with the square of the number of steps: what they bound to a tenth of a second
// takes minutes.
type meter struct {
	check func() error // of the context
	limit uint64
	spent uint64
	steps int
}

// step notes that a step was done, with a result. Without a request, CEL computes a constant.
func (r *Request) step(result ref.Val) {
	if r == nil {
		return
	}
	size := 0
	switch v := result.(type) {
	case types.String:
		size = len(v)
	case types.Bytes:
		size = len(v)
	}
	if r.spent += 1 + uint64(size/10); r.spent > r.limit {
		r.abort(fmt.Errorf("%w: more than %d", ErrCost, r.limit))
	}
	if r.steps++; r.steps%contextSteps == 0 {
		err := r.check()
		if err == nil && r.Step != nil {
			err = r.Step()
		}
		if err != nil {
			r.abort(err)
		}
	}
}

// metered returns a node that counts its steps. Constants and literals cost nothing but their parts.
func (w weighed) metered(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch n := node.(type) {
	case interpreter.InterpretableConst, interpreter.InterpretableConstructor:
		return node, nil
	case interpreter.InterpretableAttribute:
		return &meteredAttribute{InterpretableAttribute: n}, nil
	case interpreter.InterpretableCall:
		if call, err := w.call(n); call != nil || err != nil {
			return call, err
		}
		return &meteredCall{InterpretableCall: n}, nil
	}
	return &meteredNode{node}, nil
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
	requestOf(frame).step(v)
	return v
}

// Eval evaluates the node.
func (n *meteredNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// meteredCall counts the steps of a function, whose result takes memory.
type meteredCall struct {
	interpreter.InterpretableCall
}

// Exec evaluates the call.
func (n *meteredCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableCall.Exec(frame)
	r := requestOf(frame)
	if r == nil {
		return v
	}
	r.step(v)
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
}

// AddQualifier selects a member.
func (n *meteredAttribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	_, err := n.InterpretableAttribute.AddQualifier(q)
	return n, err
}

// Exec evaluates the attribute.
func (n *meteredAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableAttribute.Exec(frame)
	requestOf(frame).step(v)
	return v
}

// Eval evaluates the attribute.
func (n *meteredAttribute) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}
