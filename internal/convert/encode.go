// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/internal/jsonscan"
)

// appendJSON appends v, which has the type of s, byte for byte as encoding/json writes it, in a third of the time.
func appendJSON(out []byte, s *schema, v value) ([]byte, error) {
	switch s.shape {
	case shapeString:
		return jsonscan.AppendString(out, *v.string()), nil
	case shapeBool:
		return strconv.AppendBool(out, *v.bool()), nil
	case shapeInt:
		return strconv.AppendInt(out, v.int(s), 10), nil
	case shapeObject:
		return appendObject(out, s, v)
	case shapeList:
		return appendList(out, s, v)
	case shapeMap:
		return appendMap(out, s, v)
	case shapePointer:
		if v.address() == nil {
			return append(out, "null"...), nil
		}
		return appendJSON(out, s.elem, v.target())
	case shapeRaw:
		return appendRaw(out, *read[apiextensionsv1.JSON](v))
	}
	return appendOwn(out, v.pointer(s))
}

func appendObject(out []byte, s *schema, v value) (_ []byte, err error) {
	out = append(out, '{')
	start := len(out)
	for _, f := range s.fields {
		if member := f.in(v); !f.omits(member) {
			out = append(separated(out, start), f.key...)
			if out, err = appendJSON(out, f.schema, member); err != nil {
				return nil, err
			}
		}
	}
	return append(out, '}'), nil
}

func appendList(out []byte, s *schema, v value) (_ []byte, err error) {
	l := read[list](v)
	if l.first == nil {
		return append(out, "null"...), nil
	}
	out = append(out, '[')
	start := len(out)
	for i := range l.len {
		if out, err = appendJSON(separated(out, start), s.elem, v.element(s.elem, i)); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendMap(out []byte, s *schema, v value) (_ []byte, err error) {
	if v.address() == nil {
		return append(out, "null"...), nil
	}
	if s.typ == textsType {
		return appendTexts(out, *read[map[string]string](v)), nil
	}
	type entry struct {
		key   string
		value reflect.Value
	}
	m := v.reflected(s)
	entries := make([]entry, 0, m.Len())
	for each := m.MapRange(); each.Next(); {
		entries = append(entries, entry{each.Key().String(), each.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	out = append(out, '{')
	start := len(out)
	for _, e := range entries {
		out = append(jsonscan.AppendString(separated(out, start), e.key), ':')
		if out, err = appendJSON(out, s.elem, copied(s.elem, e.value)); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendTexts appends a map of strings.
func appendTexts(out []byte, texts map[string]string) []byte {
	out = append(out, '{')
	start := len(out)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		out = append(jsonscan.AppendString(separated(out, start), key), ':')
		out = jsonscan.AppendString(out, texts[key])
	}
	return append(out, '}')
}

// compact has the bytes that encoding/json writes in raw JSON as they are, wherever they are: neither white space, nor
// what it escapes, with the first byte of U+2028 and U+2029.
var compact = func() (is [256]bool) {
	for c := range is {
		is[c] = c > ' ' && c != '<' && c != '>' && c != '&' && c != 0xe2
	}
	return is
}()

// appendRaw appends JSON that is valid.
func appendRaw(out []byte, raw apiextensionsv1.JSON) ([]byte, error) {
	for _, c := range raw.Raw {
		if !compact[c] {
			return appendCompact(out, raw.Raw), nil
		}
	}
	if len(raw.Raw) == 0 {
		return append(out, "null"...), nil
	}
	return append(out, raw.Raw...), nil
}

// appendCompact appends raw JSON without white space, and with what encoding/json escapes.
func appendCompact(out, raw []byte) []byte {
	inside := false // a string
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case compact[c]:
			if c == '"' {
				inside = !inside
			}
			if c == '\\' { // what it escapes ends no string
				out = append(out, c)
				i++
				c = raw[i]
			}
			out = append(out, c)
		case c == '<' || c == '>' || c == '&':
			out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&0xf])
		case c == 0xe2 && i+2 < len(raw) && raw[i+1] == 0x80 && raw[i+2]&^1 == 0xa8: // U+2028 and U+2029
			out = append(out, '\\', 'u', '2', '0', '2', '8'+raw[i+2]&1)
			i += 2
		case inside || c > ' ':
			out = append(out, c)
		}
	}
	return out
}

// appendOwn appends what v, a pointer, points to, which has a form of its own.
func appendOwn(out []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case *metav1.Time:
		if v.IsZero() {
			return append(out, "null"...), nil
		}
		out = v.UTC().AppendFormat(append(out, '"'), time.RFC3339)
		return append(out, '"'), nil
	case *metav1.Duration:
		return append(append(append(out, '"'), v.Duration.String()...), '"'), nil
	}
	written, err := json.Marshal(v)
	return append(out, written...), err
}

// omits reports whether encoding/json leaves out the member f if v is its value.
func (f *field) omits(v value) bool {
	return f.omitEmpty && isEmpty(f.schema, v) || f.omitZero && f.isZero(v)
}

// isEmpty reports whether v is what omitempty leaves out.
func isEmpty(s *schema, v value) bool {
	switch s.shape {
	case shapeString:
		return *v.string() == ""
	case shapeBool:
		return !*v.bool()
	case shapeInt:
		return v.int(s) == 0
	case shapePointer:
		return v.address() == nil
	case shapeList:
		return read[list](v).len == 0
	case shapeMap:
		return v.address() == nil || v.reflected(s).Len() == 0
	}
	return false // a struct
}

// isZero reports whether v is what omitzero leaves out.
func (f *field) isZero(v value) bool {
	s := f.schema
	switch {
	case s.shape == shapePointer:
		return v.address() == nil || s.elem.saysZero && v.target().pointer(s.elem).(isZeroer).IsZero()
	case s.saysZero:
		return v.pointer(s).(isZeroer).IsZero()
	}
	return v.isBlank(s) || v.reflected(s).IsZero()
}
