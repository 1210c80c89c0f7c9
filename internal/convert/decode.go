// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hookgate/hookgate/internal/jsonscan"
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

// decoder fills Go values from JSON and collects the members that their types do not know, in one pass, which makes
// conversions affordable. Like the API server, and unlike encoding/json, it treats names of members as
// case-sensitive. The values share memory with Text, which must outlive them unchanged.
type decoder struct {
	jsonscan.Scanner
	meter   *meter
	arena   *arena
	all     string // Text, of which strings without escapes are substrings
	path    []step
	unknown []member
}

func newDecoder(b []byte, m *meter, a *arena) *decoder {
	return &decoder{
		Scanner: jsonscan.Scanner{Text: b, Step: m.guard.Step}, meter: m, arena: a, all: shared(b),
		path: make([]step, 0, 16),
	}
}

// mismatch is the error of a value of the wrong JSON type.
type mismatch struct {
	path string
	want string
}

func (e *mismatch) Error() string { return fmt.Sprintf("%s is not %s", e.path, e.want) }

func (d *decoder) mismatch(i int, want string) (int, error) {
	return i, &mismatch{path: pathOf(d.path), want: want}
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

// decode fills v, which has the type of s, from the value at i, and returns the index after it.
func (d *decoder) decode(i int, s *schema, v value) (int, error) {
	if d.At(i) == 'n' && s.shape != shapeRaw {
		v.reflected(s).SetZero()
		return d.Literal(i, "null")
	}
	switch s.shape {
	case shapePointer:
		if v.address() == nil {
			v.setTarget(d.arena.one(s.elem))
		}
		return d.decode(i, s.elem, v.target())
	case shapeString:
		str, end, err := d.str(i)
		if err == nil {
			*v.string() = str
		}
		return end, err
	case shapeBool:
		switch d.At(i) {
		case 't':
			*v.bool() = true
			return d.Literal(i, "true")
		case 'f':
			*v.bool() = false
			return d.Literal(i, "false")
		}
		return d.mismatch(i, "true or false")
	case shapeInt:
		return d.int(i, s, v)
	case shapeObject:
		return d.object(i, s, v)
	case shapeList:
		return d.list(i, s, v)
	case shapeMap:
		return d.mapping(i, s, v)
	}
	end, err := d.Value(i, len(d.path))
	if err != nil {
		return end, err
	}
	if s.shape == shapeRaw {
		if string(d.Text[i:end]) != "null" {
			read[apiextensionsv1.JSON](v).Raw = d.Text[i:end:end]
		}
		return end, nil
	}
	if err := d.own(i, end, v.pointer(s)); err != nil {
		return d.mismatch(i, wanted(s.typ))
	}
	return end, nil
}

// own fills what v, a pointer, points to, which has a form of its own, from the text from i to end. For times and
// durations, it does what their method does, without encoding/json.
func (d *decoder) own(i, end int, v any) (err error) {
	if d.Text[i] == '"' {
		switch v := v.(type) {
		case *metav1.Time:
			v.Time, err = time.Parse(time.RFC3339, d.unquote(i, end))
			v.Time = v.Local() //nolint:gosmopolitan // as in its UnmarshalJSON
			return err
		case *metav1.Duration:
			v.Duration, err = time.ParseDuration(d.unquote(i, end))
			return err
		}
	}
	return v.(json.Unmarshaler).UnmarshalJSON(d.Text[i:end])
}

func (d *decoder) int(i int, s *schema, v value) (int, error) {
	if c := d.At(i); c != '-' && (c < '0' || c > '9') {
		return d.mismatch(i, "a number")
	}
	end, err := d.Number(i)
	if err != nil {
		return end, err
	}
	n, err := strconv.ParseInt(d.all[i:end], 10, s.typ.Bits())
	if err != nil {
		return d.mismatch(i, fmt.Sprintf("a whole number of %d bits", s.typ.Bits()))
	}
	v.setInt(s, n)
	return end, nil
}

// wanted describes the form in JSON of a type that implements json.Unmarshaler.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return "a time like 2006-01-02T15:04:05Z"
	case reflect.TypeFor[metav1.Duration]():
		return "a duration like 5m0s"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a whole number or a string"
	}
	return "a " + t.Name()
}

// str reads a string. As in encoding/json, text that is not Unicode becomes U+FFFD.
func (d *decoder) str(i int) (string, int, error) {
	if d.At(i) != '"' {
		end, err := d.mismatch(i, "a string")
		return "", end, err
	}
	end, err := d.SkipString(i)
	if err != nil {
		return "", end, err
	}
	return d.unquote(i, end), end, nil
}

// unquote returns the text of the string from i to end, including the quotes.
func (d *decoder) unquote(i, end int) string {
	inside := d.all[i+1 : end-1]
	if strings.IndexByte(inside, '\\') < 0 && utf8.ValidString(inside) {
		return inside
	}
	return unquote(d.Text[i:end])
}

// unquote returns the text of a valid string with its quotes.
func unquote(literal []byte) string {
	inside := literal[1 : len(literal)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	text, _ := jsonscan.Unescape(inside)
	return string(text)
}

func (d *decoder) object(i int, s *schema, v value) (int, error) {
	if d.At(i) != '{' {
		return d.mismatch(i, "an object")
	}
	return members(&d.Scanner, i, func(name, end, i int) (int, error) {
		f := d.field(s, name, end)
		if f == nil {
			return d.keep(name, end, i)
		}
		return d.below(step{name: f.name, index: isMember}, i, f.schema, f.in(v))
	})
}

// field returns the field whose name is the text from i to end, or nil.
func (d *decoder) field(s *schema, i, end int) *field {
	if f := s.byName[d.all[i+1:end-1]]; f != nil {
		return f
	}
	return s.byName[d.unquote(i, end)]
}

// keep collects a member that the type does not know.
func (d *decoder) keep(name, end, i int) (int, error) {
	if err := d.meter.element(memberCost); err != nil {
		return i, err
	}
	after, err := d.Value(i, len(d.path)+1)
	if err == nil {
		d.unknown = append(d.unknown, member{
			path: slices.Clone(d.path), name: d.unquote(name, end), key: d.Text[name:end], value: d.Text[i:after],
		})
	}
	return after, err
}

// below decodes the value that s leads to. After an error, the path still leads to the place of the error.
func (d *decoder) below(s step, i int, to *schema, v value) (int, error) {
	d.path = append(d.path, s)
	i, err := d.decode(i, to, v)
	if err == nil {
		d.path = d.path[:len(d.path)-1]
	}
	return i, err
}

func (d *decoder) list(i int, s *schema, v value) (int, error) {
	if d.At(i) != '[' {
		return d.mismatch(i, "a list")
	}
	l := read[list](v)
	*l = list{}
	end, err := elements(&d.Scanner, i, func(n, i int) (int, error) {
		if err := d.meter.element(s.elem.cost()); err != nil {
			return i, err
		}
		d.arena.extend(s.elem, l)
		return d.below(step{index: n}, i, s.elem, v.element(s.elem, n))
	})
	if err == nil && l.first == nil {
		v.reflected(s).Set(reflect.MakeSlice(s.typ, 0, 0))
	}
	return end, err
}

func (d *decoder) mapping(i int, s *schema, to value) (int, error) {
	if d.At(i) != '{' {
		return d.mismatch(i, "an object")
	}
	v := to.reflected(s)
	if v.IsNil() {
		v.Set(reflect.MakeMap(s.typ))
	}
	var texts map[string]string
	if s.typ == textsType {
		texts = *read[map[string]string](to)
	}
	return members(&d.Scanner, i, func(start, end, i int) (int, error) {
		if err := d.meter.element(s.elem.cost() + entryCost); err != nil {
			return i, err
		}
		name := d.unquote(start, end)
		if texts != nil && d.At(i) == '"' {
			var err error
			texts[name], i, err = d.str(i)
			return i, err
		}
		elem := newValue(s.elem)
		i, err := d.below(step{name: name, index: isKey}, i, s.elem, elem)
		if err == nil {
			v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), elem.reflected(s.elem))
		}
		return i, err
	})
}
