// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Check returns the problems that parameters have with any schema: they must be a JSON object of limited size and
// nesting. Empty parameters have none.
func Check(at *field.Path, parameters []byte) field.ErrorList {
	_, err := parse(at, parameters)
	return single(err)
}

// single returns the list of one problem, or of none.
func single(problem *field.Error) field.ErrorList {
	if problem == nil {
		return nil
	}
	return field.ErrorList{problem}
}

// parse returns parameters of limited size. An empty text and null are an empty object.
func parse(at *field.Path, text []byte) (map[string]any, *field.Error) {
	object, problem := parseObject(at, text, limits.ParameterBytes, limits.ParameterDepth)
	if problem == nil {
		values := 0
		problem = count(at, object, &values)
	}
	return object, problem
}

// parseObject returns an object of limited size and nesting. An empty text and null are an empty object.
func parseObject(at *field.Path, text []byte, size, depth int) (map[string]any, *field.Error) {
	if len(text) > size {
		return nil, field.TooLong(at, nil, size)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "null" {
		return map[string]any{}, nil
	}
	if text[0] != '{' {
		return nil, invalid(field.ErrorTypeTypeInvalid, at, "must be a JSON object")
	}
	if !nested(text, depth) {
		return nil, invalid(field.ErrorTypeInvalid, at, fmt.Sprintf("must not be nested deeper than %d", depth))
	}
	object := map[string]any{}
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		return nil, invalid(field.ErrorTypeInvalid, at, "is not JSON: "+err.Error())
	}
	return object, nil
}

// invalid returns a problem that shows no value.
func invalid(kind field.ErrorType, at *field.Path, detail string) *field.Error {
	return &field.Error{Type: kind, Field: at.String(), BadValue: field.OmitValueType{}, Detail: detail}
}

// count adds the values in a value to n, and returns a problem if there are too many, or a name is too long.
func count(root *field.Path, value any, n *int) *field.Error {
	var below []any
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if len(name) > limits.ParameterNameBytes {
				return invalid(field.ErrorTypeInvalid, root,
					fmt.Sprintf("must not have members whose names have more than %d bytes", limits.ParameterNameBytes))
			}
			below = append(below, member)
		}
	case []any:
		below = v
	}
	if *n += len(below); *n > limits.Parameters {
		return invalid(field.ErrorTypeInvalid, root, fmt.Sprintf("must not have more than %d values", limits.Parameters))
	}
	for _, value := range below {
		if problem := count(root, value, n); problem != nil {
			return problem
		}
	}
	return nil
}

// nested reports whether the objects and lists of a text in JSON are at most that deep. It reads a text that is not
// JSON to its end as well, and leaves that to the decoder.
func nested(text []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// merge merges own into defaults as a JSON merge patch. The result shares nothing with later calls.
func merge(at *field.Path, defaults, own []byte) (map[string]any, field.ErrorList) {
	patch, problem := parse(at, own)
	if problem != nil {
		return nil, field.ErrorList{problem}
	}
	target, problem := parse(at, defaults)
	if problem != nil {
		problem.Detail = "the default parameters of the InfrastructureClass: " + problem.Detail
		return nil, field.ErrorList{problem}
	}
	return patched(target, patch), nil
}

// patched applies a merge patch to an object, and returns the object.
func patched(target, patch map[string]any) map[string]any {
	for name, value := range patch {
		if value == nil {
			delete(target, name)
			continue
		}
		if below, ok := value.(map[string]any); ok {
			before, ok := target[name].(map[string]any)
			if !ok {
				before = map[string]any{} // null within a new object has nothing to remove, and goes
			}
			value = patched(before, below)
		}
		target[name] = value
	}
	return target
}

// encode returns parameters as JSON, whose members are sorted.
func encode(at *field.Path, parameters map[string]any) ([]byte, field.ErrorList) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(parameters); err != nil {
		return nil, field.ErrorList{field.InternalError(at, err)}
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(text) > limits.ParameterBytes {
		problem := field.TooLong(at, nil, limits.ParameterBytes)
		problem.Detail += " with the defaults"
		return nil, field.ErrorList{problem}
	}
	return text, nil
}
