// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// step is one step from an object to a value in it: a member, the key of a map, or an element of a list.
type step struct {
	name  string
	index int // of an element; otherwise isMember or isKey
}

const (
	isMember = -1
	isKey    = -2
)

// member is one that no type knows.
type member struct {
	path  []step // of the object that it is in
	name  string
	key   []byte // name as it is written, quotes included
	value []byte
}

// decoder fills Go values from JSON, and finds the members that their types do not know on the way: one pass for both, which is
// what makes a conversion affordable. Like the API server, and unlike encoding/json, it takes names of members only as they are
// written in the types. What it has filled shares memory with the text.
type decoder struct {
	text    text
	all     string // the text once more: strings without escapes are parts of it
	path    []step
	unknown []member
}

func newDecoder(b []byte) *decoder {
	return &decoder{text: b, all: string(b), path: make([]step, 0, 16)}
}

// mismatch tells that a value is not what a type has at that place.
type mismatch struct {
	path string
	want string
}

func (e *mismatch) Error() string { return fmt.Sprintf("%s is not %s", e.path, e.want) }

func (d *decoder) mismatch(i int, want string) (int, error) {
	return i, &mismatch{path: pathOf(d.path), want: want}
}

// decode fills v, which has the type of s, from the value at i, and returns the index after it.
func (d *decoder) decode(i int, s *schema, v reflect.Value) (int, error) {
	t := d.text
	if t.at(i) == 'n' && s.shape != shapeRaw {
		v.SetZero()
		return t.literal(i, "null")
	}
	switch s.shape {
	case shapePointer:
		if v.IsNil() {
			v.Set(reflect.New(s.elem.typ))
		}
		return d.decode(i, s.elem, v.Elem())
	case shapeString:
		str, end, err := d.str(i)
		if err == nil {
			v.SetString(str)
		}
		return end, err
	case shapeBool:
		switch t.at(i) {
		case 't':
			v.SetBool(true)
			return t.literal(i, "true")
		case 'f':
			v.SetBool(false)
			return t.literal(i, "false")
		}
		return d.mismatch(i, "true or false")
	case shapeInt:
		if c := t.at(i); c != '-' && (c < '0' || c > '9') {
			return d.mismatch(i, "a number")
		}
		end, err := t.number(i)
		if err != nil {
			return end, err
		}
		n, err := strconv.ParseInt(d.all[i:end], 10, s.typ.Bits())
		if err != nil {
			return d.mismatch(i, fmt.Sprintf("a whole number of %d bits", s.typ.Bits()))
		}
		v.SetInt(n)
		return end, nil
	case shapeObject:
		return d.object(i, s, v)
	case shapeList:
		return d.list(i, s, v)
	case shapeMap:
		return d.mapping(i, s, v)
	}
	end, err := t.value(i, len(d.path))
	if err != nil {
		return end, err
	}
	if s.shape == shapeRaw {
		if string(t[i:end]) != "null" {
			v.Field(0).SetBytes(t[i:end:end])
		}
		return end, nil
	}
	if err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(t[i:end]); err != nil {
		return d.mismatch(i, wanted(s.typ))
	}
	return end, nil
}

// wanted says what a type with its own way to be written is to be.
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

func (d *decoder) str(i int) (string, int, error) {
	if d.text.at(i) != '"' {
		end, err := d.mismatch(i, "a string")
		return "", end, err
	}
	end, plain, err := d.text.str(i)
	switch {
	case err != nil:
		return "", end, err
	case plain:
		return d.all[i+1 : end-1], end, nil
	}
	return d.text.unquote(i, end), end, nil
}

func (d *decoder) object(i int, s *schema, v reflect.Value) (int, error) {
	if d.text.at(i) != '{' {
		return d.mismatch(i, "an object")
	}
	return d.text.object(i, len(d.path), func(start, end, i int) (int, error) {
		f := s.byName[d.all[start+1:end-1]]
		if f == nil {
			name := d.text.unquote(start, end)
			if f = s.byName[name]; f == nil {
				after, err := d.text.value(i, len(d.path)+1)
				if err == nil {
					d.unknown = append(d.unknown, member{
						path: append([]step(nil), d.path...), name: name, key: d.text[start:end], value: d.text[i:after],
					})
				}
				return after, err
			}
		}
		d.path = append(d.path, step{name: f.name, index: isMember})
		i, err := d.decode(i, f.schema, f.in(v))
		if err == nil {
			d.path = d.path[:len(d.path)-1]
		}
		return i, err
	})
}

func (d *decoder) list(i int, s *schema, v reflect.Value) (int, error) {
	if d.text.at(i) != '[' {
		return d.mismatch(i, "a list")
	}
	v.SetZero()
	end, err := d.text.list(i, len(d.path), func(n, i int) (int, error) {
		v.Grow(1)
		v.SetLen(n + 1)
		d.path = append(d.path, step{index: n})
		i, err := d.decode(i, s.elem, v.Index(n))
		if err == nil {
			d.path = d.path[:len(d.path)-1]
		}
		return i, err
	})
	if err == nil && v.IsNil() {
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
	}
	return end, err
}

func (d *decoder) mapping(i int, s *schema, v reflect.Value) (int, error) {
	if d.text.at(i) != '{' {
		return d.mismatch(i, "an object")
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(s.typ))
	}
	texts, _ := v.Addr().Interface().(*map[string]string)
	return d.text.object(i, len(d.path), func(start, end, i int) (int, error) {
		name := d.text.unquote(start, end)
		d.path = append(d.path, step{name: name, index: isKey})
		var err error
		if texts != nil && d.text.at(i) == '"' {
			(*texts)[name], i, err = d.str(i)
		} else {
			elem := reflect.New(s.elem.typ).Elem()
			if i, err = d.decode(i, s.elem, elem); err == nil {
				v.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), elem)
			}
		}
		if err == nil {
			d.path = d.path[:len(d.path)-1]
		}
		return i, err
	})
}
