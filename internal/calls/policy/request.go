// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// ReadLimit bounds the bytes of a request that the conditions of one policy look through. Whoever selects a member of
	// an object looks through all of it, once for all conditions: request.cluster.metadata.name takes the size of the
	// request, of the Cluster and of its metadata. It is ten times the largest request, about a fifth of a second.
	ReadLimit = limits.PolicyReadBytes

	// MemoryLimit bounds the bytes that they allocate, though much of it is garbage soon.
	MemoryLimit = limits.PolicyMemoryBytes

	// readStep is the number of bytes that are read, and reserved, before the Guard is asked.
	readStep    = 256 << 10
	reserveStep = 64 << 10

	// What values take in bytes, with what an expression may make of each.
	memberCost = 32
	keyCost    = 96
	valueCost  = 160
)

// Guard bounds what conditions do with one request. The zero value adds no bound.
type Guard struct {
	// Step is called before each quarter of a MiB or so is read, and after each thousand steps of expressions. It may
	// wait, and its error ends the evaluation.
	Step func() error
	// Reserve is called with a number of bytes before that many are allocated for values of the request. Its error ends
	// the evaluation. The first 64 KiB are allocated without it.
	Reserve func(bytes int64) error
}

// Request is a request as conditions see it: JSON in which nothing is decoded but what an expression selects. It
// belongs to one goroutine, and keeps what it has found for the conditions of other policies.
type Request struct {
	root ref.Val
	Guard
	meter

	evaluation int   // the number of the call of Match that looks at the request
	read       int   // bytes that it has looked through
	stepped    int   // bytes that were looked through since the last Step
	held       int64 // bytes that were allocated and not reserved
	taken      int   // bytes that were allocated
	err        error // what ended the evaluation

	args []ref.Val // of the functions that are about to be called
}

// NewRequest returns the Request of a valid JSON text, which must not change.
func NewRequest(text []byte, g Guard) *Request {
	r := &Request{Guard: g}
	r.root = r.value(bytes.Trim(text, " \t\r\n"))
	return r
}

// NewMessage returns a Request that is not in JSON yet. With the name of a member, encode returns a JSON object that
// has at least that member of the request, if the request has it; with "", it returns all of the request.
func NewMessage(encode func(member string) ([]byte, error), g Guard) *Request {
	r := &Request{Guard: g}
	r.root = &object{r: r, encode: encode}
	return r
}

// begin begins a call of Match, which may look through ReadLimit.
func (r *Request) begin(ctx context.Context) {
	r.evaluation, r.read, r.taken, r.err = r.evaluation+1, 0, 0, nil
	r.check = ctx.Err
}

// abort ends the evaluation.
func (r *Request) abort(err error) {
	r.err = err
	panic(interpreter.EvalCancelledError{Message: err.Error(), Cause: interpreter.CostLimitExceeded})
}

// look notes that so many bytes are looked through.
func (r *Request) look(n int) {
	if r.read += n; r.read > ReadLimit {
		r.abort(fmt.Errorf("%w: the conditions of the policy read more than %d bytes", ErrCost, ReadLimit))
	}
	if r.stepped += n; r.stepped > readStep && r.Step != nil {
		r.stepped = 0
		if err := r.Step(); err != nil {
			r.abort(err)
		}
	}
}

// take notes that so many bytes are about to be allocated.
func (r *Request) take(n int) {
	if r.taken += n; n > MemoryLimit || r.taken > MemoryLimit {
		r.abort(fmt.Errorf("%w: the expressions need more than %d bytes of memory", ErrCost, MemoryLimit))
	}
	if r.held += int64(n); r.held > reserveStep && r.Reserve != nil {
		if err := r.Reserve(r.held); err != nil {
			r.abort(err)
		}
		r.held = 0
	}
}

// value returns the value of a JSON text. Whole numbers are of type int if they fit, all others double.
func (r *Request) value(text []byte) ref.Val {
	r.take(valueCost)
	if len(text) == 0 {
		r.abort(errNotJSON)
	}
	switch text[0] {
	case '{':
		return &object{r: r, text: text}
	case '[':
		return &list{r: r, text: text, size: -1}
	case '"':
		return types.String(r.str(text))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return types.Int(i)
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return types.NewErr("number out of range: %.64s", text)
	}
	return types.Double(f)
}

// str returns the text of a string, as encoding/json does. An expression may make another string of it.
func (r *Request) str(text []byte) string {
	r.take(2 * len(text))
	if inside := text[1 : len(text)-1]; bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		r.abort(fmt.Errorf("%w: %w", errNotJSON, err))
	}
	return s
}
