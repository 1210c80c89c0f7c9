// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"reflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// decoder reads one body. Its methods take the index at which a value begins, white space skipped, and return the one
// after it.
type decoder struct {
	scanner
	texts [32]string // some of the strings read so far, by hash: the same few stand in item after item
	meta  int        // how many of kind and apiVersion were there
	slabs slabs
}

// document reads the whole body.
func (d *decoder) document(t *table, rv reflect.Value) *Error {
	i := space(d.b, 0)
	if i >= len(d.b) {
		return early(d.b)
	}
	if d.b[i] != '{' {
		return d.mismatch("", i, "a JSON object")
	}
	i, err := d.object(t, rv, i, 1)
	if err != nil {
		return err
	}
	if err := d.end(i); err != nil {
		return err
	}
	return d.utf8()
}

// object reads the object that begins at i, the depth'th level, into the message rv.
func (d *decoder) object(t *table, rv reflect.Value, i, depth int) (int, *Error) {
	var seen uint32
	next := 0
	first := true
	for {
		name, j, err := d.name(i, first)
		if err != nil || name == nil {
			return j, err
		}
		first = false
		m := t.member(name, next)
		if m < 0 {
			if i, err = d.unknown(t, rv, string(name), i, j, depth); err != nil {
				return i, err
			}
			continue
		}
		next = m + 1
		f := &t.fields[m]
		if seen&(1<<m) != 0 {
			return i, wrong(f.name, j, "stands twice in one object")
		}
		seen |= 1 << m
		if i, err = d.field(t, f, rv, j, depth); err != nil {
			return i, err
		}
	}
}

// name reads the name of the next member of an object and returns the index of its value. i is at the opening brace for
// the first member, and after the last value for the others. At the end of the object, the name is nil.
func (d *decoder) name(i int, first bool) ([]byte, int, *Error) {
	b := d.b
	if first {
		i++
	}
	i = space(b, i)
	if i >= len(b) {
		return nil, i, early(b)
	}
	if b[i] == '}' {
		return nil, i + 1, nil
	}
	if !first {
		if b[i] != ',' {
			return nil, i, d.afterElement(i, true)
		}
		i = space(b, i+1)
	}
	if i >= len(b) || b[i] != '"' {
		return nil, i, unexpected(b, i, "a member name")
	}
	name, i, err := d.text(i)
	if err != nil {
		return nil, i, err
	}
	i, err = d.colon(i)
	if err == nil && i >= len(b) {
		err = early(b)
	}
	return name, i, err
}

// unknown keeps a member that the schema does not have.
func (d *decoder) unknown(t *table, rv reflect.Value, name string, i, value, depth int) (int, *Error) {
	members := t.unknownOf(rv)
	if _, ok := (*members)[name]; ok {
		return i, wrong(printable(name), value, "stands twice in one object")
	}
	end, err := d.value(value, depth)
	if err != nil {
		return end, err
	}
	keep(members, name, d.b[value:end:end])
	return end, nil
}

func keep(members *map[string]*hooksv1alpha1.JSON, name string, raw []byte) {
	if *members == nil {
		*members = map[string]*hooksv1alpha1.JSON{}
	}
	(*members)[name] = &hooksv1alpha1.JSON{Raw: raw}
}

// field reads the value of a member that the schema has.
func (d *decoder) field(t *table, f *field, rv reflect.Value, i, depth int) (int, *Error) {
	if d.b[i] == 'n' {
		end, err := d.literal(i, "null")
		if err == nil && f.always && f.shape == shapeList {
			keep(t.unknownOf(rv), f.name, d.b[i:end:end]) // written as null again; an absent list is written as []
		}
		return end, err
	}
	switch f.shape {
	case shapeTypeMeta:
		s, end, err := d.stringAt(f.name, i)
		switch {
		case err != nil || s == "":
		case s == f.text:
			d.meta++
		default:
			err = wrong(f.name, i, "want %s, got %s", f.text, printable(s))
		}
		return end, err
	case shapeString:
		s, end, err := d.stringAt(f.name, i)
		*pointer[string](rv, f.index) = s
		return end, err
	case shapeEnum:
		return d.enumField(f, rv, i)
	case shapeInt32:
		n, end, err := d.int32At(f.name, i)
		*pointer[int32](rv, f.index) = n
		return end, err
	case shapeOptionalInt:
		n, end, err := d.int32At(f.name, i)
		*pointer[*int32](rv, f.index) = &n
		return end, err
	case shapeBool:
		v, end, err := d.boolAt(f.name, i)
		*pointer[bool](rv, f.index) = v
		return end, err
	case shapeOptionalBool:
		v, end, err := d.boolAt(f.name, i)
		*pointer[*bool](rv, f.index) = &v
		return end, err
	case shapeBytes:
		return d.bytesField(f, rv, i)
	case shapeStringList:
		return d.stringList(f, rv, i)
	case shapeStringMap:
		return d.mapField(f, rv, i)
	case shapeRaw:
		end, err := d.value(i, depth)
		if err == nil {
			raw := d.slabs.raw()
			raw.Raw = d.b[i:end:end]
			*pointer[*hooksv1alpha1.RawExtension](rv, f.index) = raw
		}
		return end, err
	case shapeJSON:
		end, err := d.value(i, depth)
		if err == nil {
			raw := d.slabs.json()
			raw.Raw = d.b[i:end:end]
			*pointer[*hooksv1alpha1.JSON](rv, f.index) = raw
		}
		return end, err
	case shapeMessage:
		return d.messageField(f, rv, i, depth+1)
	default:
		return d.list(f, rv, i, depth+1)
	}
}

// messageField reads an object of the envelope.
func (d *decoder) messageField(f *field, rv reflect.Value, i, depth int) (int, *Error) {
	if d.b[i] != '{' {
		return i, d.mismatch(f.name, i, "an object")
	}
	m := reflect.New(f.message.goType)
	rv.Field(f.index).Set(m)
	end, err := d.object(f.message, m.Elem(), i, depth)
	if err != nil {
		return end, err.in(f.name)
	}
	return end, nil
}

// list reads an array of objects.
func (d *decoder) list(f *field, rv reflect.Value, i, depth int) (int, *Error) {
	if d.b[i] != '[' {
		return i, d.mismatch(f.name, i, "an array")
	}
	b := d.b
	slice := rv.Field(f.index)
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for n := 0; ; n++ {
		if i >= len(b) {
			return i, early(b)
		}
		if b[i] != '{' {
			return i, d.mismatch(f.name+element(n), i, "an object")
		}
		m := d.slabs.message(f.message)
		if n == slice.Cap() {
			slice.Grow(max(n, 4))
		}
		slice.SetLen(n + 1)
		slice.Index(n).Set(m)
		var err *Error
		if i, err = d.object(f.message, m.Elem(), i, depth+1); err != nil {
			return i, err.in(f.name + element(n))
		}
		i = space(b, i)
		switch {
		case i >= len(b):
			return i, early(b)
		case b[i] == ']':
			return i + 1, nil
		case b[i] != ',':
			return i, d.afterElement(i, false)
		}
		i = space(b, i+1)
	}
}

// stringList reads an array of strings.
func (d *decoder) stringList(f *field, rv reflect.Value, i int) (int, *Error) {
	if d.b[i] != '[' {
		return i, d.mismatch(f.name, i, "an array")
	}
	b := d.b
	texts := pointer[[]string](rv, f.index)
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		if i >= len(b) {
			return i, early(b)
		}
		s, end, err := d.stringAt(f.name+element(len(*texts)), i)
		if err != nil {
			return end, err
		}
		*texts = append(*texts, s)
		i = space(b, end)
		switch {
		case i >= len(b):
			return i, early(b)
		case b[i] == ']':
			return i + 1, nil
		case b[i] != ',':
			return i, d.afterElement(i, false)
		}
		i = space(b, i+1)
	}
}

// mapField reads an object whose values are strings.
func (d *decoder) mapField(f *field, rv reflect.Value, i int) (int, *Error) {
	if d.b[i] != '{' {
		return i, d.mismatch(f.name, i, "an object")
	}
	entries := map[string]string{}
	*pointer[map[string]string](rv, f.index) = entries
	for first := true; ; first = false {
		name, j, err := d.name(i, first)
		if err != nil || name == nil {
			return j, err
		}
		key := string(name)
		if _, ok := entries[key]; ok {
			return j, wrong(f.name+entry(key), j, "stands twice in one object")
		}
		if d.b[j] == 'n' { // as encoding/json has it: an entry with an empty string
			entries[key] = ""
			if i, err = d.literal(j, "null"); err != nil {
				return i, err
			}
			continue
		}
		if d.b[j] != '"' {
			return j, d.mismatch(f.name+entry(key), j, "a string")
		}
		text, end, err := d.text(j)
		if err != nil {
			return end, err
		}
		entries[key] = string(text)
		i = end
	}
}
