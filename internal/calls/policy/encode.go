// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// encoder writes the value of an expression as JSON. Each value costs what a step costs that has it as its result.
type encoder struct {
	r    *Request
	text []byte
}

// encode returns the JSON text of a value. An error wraps ErrNotJSON, or is for Request.failure.
func encode(r *Request, value ref.Val) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			cancelled, ok := p.(interpreter.EvalCancelledError)
			if !ok {
				panic(p)
			}
			err = cancelled
		}
	}()
	e := &encoder{r: r}
	if err := e.value(value, 0); err != nil {
		return nil, err
	}
	return e.text, nil
}

func (e *encoder) value(value ref.Val, depth int) error {
	if depth > limits.JSONDepth {
		return fmt.Errorf("%w: it is nested deeper than %d levels", ErrNotJSON, limits.JSONDepth)
	}
	e.r.step(value)
	switch v := value.(type) {
	case types.Null:
		e.add("null")
	case types.Bool:
		e.add(strconv.FormatBool(bool(v)))
	case types.Int:
		e.add(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		e.add(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return fmt.Errorf("%w: a number is not finite", ErrNotJSON)
		}
		text, err := json.Marshal(float64(v))
		if err != nil {
			return err
		}
		e.add(string(text))
	case types.String:
		e.str(string(v))
	case types.Bytes:
		e.str(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp, types.Duration:
		text, _ := value.ConvertToType(types.StringType).(types.String)
		e.str(string(text))
	case *object:
		v.search()
		e.verbatim(v.text)
	case *list:
		e.verbatim(v.text)
	case traits.Mapper:
		return e.members(v, depth)
	case traits.Lister:
		return e.elements(v, depth)
	case *types.Optional:
		return fmt.Errorf("%w: it has an optional value; add orValue(…), or put a question mark before the "+
			"member's name", ErrNotJSON)
	case *types.Err:
		return v
	default:
		return fmt.Errorf("%w: it has a value of type %s", ErrNotJSON, value.Type().TypeName())
	}
	return nil
}

// members writes an object that an expression has made.
func (e *encoder) members(v traits.Mapper, depth int) error {
	var names []string
	for it := v.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return fmt.Errorf("%w: it has a map whose keys are not strings", ErrNotJSON)
		}
		e.r.take(keyCost)
		names = append(names, string(name))
	}
	slices.Sort(names)
	e.add("{")
	for i, name := range names {
		if i > 0 {
			e.add(",")
		}
		e.r.step(types.String(name))
		e.str(name)
		e.add(":")
		if err := e.value(v.Get(types.String(name)), depth+1); err != nil {
			return err
		}
	}
	e.add("}")
	return nil
}

// elements writes a list that an expression has made.
func (e *encoder) elements(v traits.Lister, depth int) error {
	e.add("[")
	for it, first := v.Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			e.add(",")
		}
		if err := e.value(it.Next(), depth+1); err != nil {
			return err
		}
	}
	e.add("]")
	return nil
}

// errLong means that a value is longer than any patch may be.
var errLong = fmt.Errorf("%w: its value has more than %d MiB", ErrCost, limits.BodyBytes>>20)

// reserve is called before so many bytes are added to the text, which may grow to twice its size, and become part of
// another.
func (e *encoder) reserve(n int) {
	if len(e.text)+n > limits.BodyBytes {
		e.r.abort(errLong)
	}
	e.r.take(3 * n)
}

func (e *encoder) add(text string) {
	e.reserve(len(text))
	e.text = append(e.text, text...)
}

func (e *encoder) str(s string) {
	n := len(s) + len(`""`)
	for i := range len(s) {
		if c := s[i]; c < ' ' || strings.IndexByte(`"\<>&`, c) >= 0 {
			n += len(`\u0000`) - 1
		}
	}
	e.reserve(n)
	e.text = jsonscan.AppendString(e.text, s)
}

// verbatim adds JSON of the request or of a variable.
func (e *encoder) verbatim(text []byte) {
	e.r.look(len(text))
	e.reserve(len(text))
	e.text = append(e.text, text...)
}
