// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Load decodes the JSON object at a member of a request into what out points to, with encoding/json; into an any,
// numbers become json.Number. The path has the names of the contract's JSON: "cluster", "current.machine",
// "items[0].object".
//
// If the member is not there, is not a JSON object or does not fit out, the error has the status INVALID_ARGUMENT and
// the text begins with the path: return it as it is.
func Load(in proto.Message, path string, out any) error {
	raw, err := rawAt(in.ProtoReflect(), path)
	if err != nil {
		return err
	}
	return decodeObject(path, raw, out)
}

// decodeObject decodes a JSON object.
func decodeObject(path string, raw []byte, out any) error {
	if text := bytes.TrimLeft(raw, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return invalidf("%s: want a JSON object", path)
	}
	if err := decode(raw, out); err != nil {
		return invalidf("%s: %v", path, err)
	}
	return nil
}

// decode decodes one JSON value without rounding its numbers.
func decode(raw []byte, out any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(out); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the JSON ends early")
		}
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// segment is one step of a path: a name, and the indexes behind it.
var segment = regexp.MustCompile(`^([^.\[\]]+)((?:\[[0-9]{1,9}\])*)$`)

// steps splits a path like "items[0].object" into names (string) and indexes (int).
func steps(path string) ([]any, error) {
	var out []any
	for part := range strings.SplitSeq(path, ".") {
		m := segment.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("path %q: want names and indexes like items[0].object", path)
		}
		out = append(out, m[1])
		for index := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			i, err := strconv.Atoi(index)
			if err != nil {
				return nil, fmt.Errorf("path %q: %w", path, err)
			}
			out = append(out, i)
		}
	}
	return out, nil
}

// pathTo returns the path of steps.
func pathTo(steps []any) string {
	var b strings.Builder
	for i, step := range steps {
		switch step := step.(type) {
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		}
	}
	return b.String()
}

// rawAt returns the JSON text at a path of a message; nothing if a message on the way is absent.
func rawAt(m protoreflect.Message, path string) ([]byte, error) {
	at, err := steps(path)
	if err != nil {
		return nil, err
	}
	var list protoreflect.List // the value of the last step, if it is a list
	for _, step := range at {
		name, isName := step.(string)
		index, _ := step.(int)
		if !isName {
			if list == nil {
				return nil, fmt.Errorf("path %q: the value before [%d] is not a list", path, index)
			}
			if index >= list.Len() {
				return nil, invalidf("%s: the request has no such element", path)
			}
			m, list = list.Get(index).Message(), nil
			continue
		}
		f := m.Descriptor().Fields().ByJSONName(name)
		switch {
		case list != nil:
			return nil, fmt.Errorf("path %q: the list before %s needs an index", path, name)
		case f == nil || f.Message() == nil || f.IsMap():
			return nil, fmt.Errorf("path %q: %s has no member %s that is an object", path, m.Descriptor().Name(), name)
		case f.IsList():
			list = m.Get(f).List()
		default:
			m = m.Get(f).Message()
		}
	}
	raw := m.Descriptor().Fields().ByName("raw")
	if list != nil || raw == nil || raw.Kind() != protoreflect.BytesKind {
		return nil, fmt.Errorf("path %q: the field does not hold JSON", path)
	}
	return m.Get(raw).Bytes(), nil
}
