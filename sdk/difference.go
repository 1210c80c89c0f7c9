// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// operation is one of a JSON Patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// differ makes a JSON Patch of the difference of two objects. It is for one goroutine.
type differ struct {
	at         []string // the place that is compared, escaped
	operations []operation
	err        error
}

// compare adds what makes b of a, at the deepest places where they differ. A member is set by add, which replaces one
// that exists, and an element of a list by replace. s is the shape of a.
func (d *differ) compare(s *shape, a, b any, inList bool) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.compareObjects(s, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok && d.compareLists(s, x, y) {
			return
		}
	}
	if equal(a, b) {
		return
	}
	op := "add"
	if inList {
		op = "replace"
	}
	d.add(op, b)
}

func (d *differ) compareObjects(s *shape, a, b map[string]any) {
	for _, name := range s.names {
		d.in(escape.Replace(name), func() {
			if value, ok := b[name]; ok {
				d.compare(s.members[name], a[name], value, false)
			} else {
				d.operations = append(d.operations, operation{Op: "remove", Path: d.path()})
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			d.in(escape.Replace(name), func() { d.add("add", b[name]) })
		}
	}
}

// compareLists reports whether it has added what makes b of a. It has not if b has to be written as a whole.
func (d *differ) compareLists(s *shape, a, b []any) bool {
	switch {
	case len(a) == len(b):
		for i := range a {
			d.in(strconv.Itoa(i), func() { d.compare(s.elements[i], a[i], b[i], true) })
		}
		return true
	case len(b) > len(a) && equal(a, b[:len(a)]):
		for _, value := range b[len(a):] {
			d.in("-", func() { d.add("add", value) })
		}
		return true
	}
	return false
}

// in calls do at a member or element of the place.
func (d *differ) in(name string, do func()) {
	d.at = append(d.at, name)
	do()
	d.at = d.at[:len(d.at)-1]
}

func (d *differ) path() string { return "/" + strings.Join(d.at, "/") }

func (d *differ) add(op string, value any) {
	text, err := marshal(value)
	if err != nil {
		d.err = err
	}
	d.operations = append(d.operations, operation{op, d.path(), text})
}

// equal reports whether two values of JSON are equal: 1 equals 1.0, and true does not equal 1.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, equal)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || decimalOf(x) == decimalOf(y))
	}
	return a == b
}

// decimal is a number as digits, without zeros at either end, times a power of ten. Two are equal if the numbers are,
// however large.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func decimalOf(n json.Number) decimal {
	var d decimal
	text := string(n)
	text, d.negative = strings.CutPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil {
			return decimal{digits: text} // equal to the same text only
		}
		text, d.exponent = text[:i], exponent
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.exponent -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// shape is the order of the members of an object, and of what is in it; nil for a value without members and elements.
type shape struct {
	names    []string
	members  map[string]*shape
	elements []*shape // of a list
}

// ordered returns an object and its shape. The text is valid JSON, and no deeper than encoding/json allows.
func ordered(text []byte) (map[string]any, *shape, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, s, err := orderedValue(decoder)
	object, _ := value.(map[string]any)
	return object, s, err
}

func orderedValue(decoder *json.Decoder) (any, *shape, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, nil, err
	}
	switch token {
	case json.Delim('{'):
		object, s := map[string]any{}, &shape{members: map[string]*shape{}}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, nil, err
			}
			key, _ := name.(string)
			if _, twice := object[key]; !twice {
				s.names = append(s.names, key)
			}
			if object[key], s.members[key], err = orderedValue(decoder); err != nil {
				return nil, nil, err
			}
		}
		_, err := decoder.Token()
		return object, s, err
	case json.Delim('['):
		list, s := []any{}, &shape{}
		for decoder.More() {
			value, element, err := orderedValue(decoder)
			if err != nil {
				return nil, nil, err
			}
			list, s.elements = append(list, value), append(s.elements, element)
		}
		_, err := decoder.Token()
		return list, s, err
	}
	return token, nil, nil
}
