// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// step leads from a value to one in it: a member of an object, a key of a map, or an element of a list.
type step struct {
	name  string
	index int // of an element; otherwise isMember or isKey
}

const (
	isMember = -1
	isKey    = -2
)

// member is a member that the Go types do not know.
type member struct {
	path  []step // of the object around it
	name  string
	key   []byte // the name as written, with the quotes
	value []byte
}

// walker reads the text of a value beside the Go type that it is about to be decoded into. It counts what that
// allocates, before it does, and collects the members that the type does not know, which a decoder drops.
type walker struct {
	jsonscan.Scanner
	meter   *jsonpatch.Meter
	path    []step
	unknown []member
	// try is set when decoding has failed: each leaf is decoded by itself, to name the one that does not fit.
	try bool
}

// mismatch is the error of a value of the wrong JSON type.
type mismatch struct {
	path string
	want string
}

func (e *mismatch) Error() string { return fmt.Sprintf("%s is not %s", e.path, e.want) }

// value reads the value at i, which becomes one of type t, and returns the index after it.
func (w *walker) value(i int, t reflect.Type) (int, error) {
	t = pointedTo(t)
	if !isLeaf(t) {
		switch c := w.At(i); {
		case c == '{' && t.Kind() == reflect.Struct:
			return w.object(i, t)
		case c == '{' && t.Kind() == reflect.Map:
			return w.entries(i, t.Elem())
		case c == '[' && t.Kind() == reflect.Slice:
			return elements(&w.Scanner, i, func(n, i int) (int, error) {
				if err := w.meter.Element(cost(t.Elem())); err != nil {
					return i, err
				}
				return w.below(step{index: n}, i, t.Elem())
			})
		}
	}
	end, err := w.Value(i, len(w.path))
	if err == nil && w.try && json.Unmarshal(w.Text[i:end], reflect.New(t).Interface()) != nil {
		err = &mismatch{path: pathOf(w.path), want: wanted(t, w.Text[i])}
	}
	return end, err
}

func (w *walker) object(i int, t reflect.Type) (int, error) {
	known := fieldsOf(t)
	return members(&w.Scanner, i, func(name, end, i int) (int, error) {
		f := known.named(w.Text[name:end])
		if f == nil {
			return w.keep(name, end, i)
		}
		return w.below(step{name: f.name, index: isMember}, i, f.typ)
	})
}

func (w *walker) entries(i int, t reflect.Type) (int, error) {
	return members(&w.Scanner, i, func(name, end, i int) (int, error) {
		if err := w.meter.Element(cost(t) + entryCost); err != nil {
			return i, err
		}
		return w.below(step{name: unquote(w.Text[name:end]), index: isKey}, i, t)
	})
}

// below reads the value that s leads to. After an error, the path still leads to the place of the error.
func (w *walker) below(s step, i int, t reflect.Type) (int, error) {
	w.path = append(w.path, s)
	i, err := w.value(i, t)
	if err == nil {
		w.path = w.path[:len(w.path)-1]
	}
	return i, err
}

// keep collects a member that the type does not know.
func (w *walker) keep(name, end, i int) (int, error) {
	if err := w.meter.Element(jsonpatch.MemberCost); err != nil {
		return i, err
	}
	after, err := w.Value(i, len(w.path)+1)
	if err == nil {
		w.unknown = append(w.unknown, member{
			path: slices.Clone(w.path), name: unquote(w.Text[name:end]), key: w.Text[name:end], value: w.Text[i:after],
		})
	}
	return after, err
}

// named returns the field whose name is a string with its quotes, or nil.
func (s *fields) named(literal []byte) *field {
	if f := s.byName[string(literal[1:len(literal)-1])]; f != nil {
		return f
	}
	return s.byName[unquote(literal)]
}

// unquote returns the text of a valid string with its quotes. As in encoding/json, text that is not Unicode becomes
// U+FFFD.
func unquote(literal []byte) string {
	inside := literal[1 : len(literal)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	text, _ := jsonscan.Unescape(inside)
	return string(text)
}

// wanted describes the form in JSON of a type, for a value that begins with c and does not have it.
func wanted(t reflect.Type, c byte) string {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return "a time like 2006-01-02T15:04:05Z"
	case reflect.TypeFor[metav1.Duration]():
		return "a duration like 5m0s"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a whole number or a string"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	if c == '-' || c >= '0' && c <= '9' {
		return fmt.Sprintf("a %d-bit integer", t.Bits())
	}
	return "a number"
}

// members calls f for each member of the object at i, with the indices of its name, of the end of the name, including
// the quotes, and of its value. f returns the index after the value.
func members(s *jsonscan.Scanner, i int, f func(name, end, value int) (int, error)) (int, error) {
	for first := true; ; first = false {
		name, more, err := s.Next(i, first, '}')
		if err != nil || !more {
			return name, err
		}
		end, value, err := s.Name(name)
		if err != nil {
			return value, err
		}
		if i, err = f(name, end, value); err != nil {
			return i, err
		}
	}
}

// elements calls f for each element of the list at i, with its number and its index. f returns the index after it.
func elements(s *jsonscan.Scanner, i int, f func(n, i int) (int, error)) (int, error) {
	for n := 0; ; n++ {
		next, more, err := s.Next(i, n == 0, ']')
		if err != nil || !more {
			return next, err
		}
		if i, err = f(n, next); err != nil {
			return i, err
		}
	}
}

// pathOf returns the path with [*] for indices and keys, so that there are no more paths than types have members.
func pathOf(path []step) string {
	var b strings.Builder
	for _, s := range path {
		if s.index != isMember {
			b.WriteString("[*]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}
