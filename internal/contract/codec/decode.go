// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// decoder reads one body. Like the methods of Scanner, its methods take the index at which a value begins and return
// the index after it. Their errors are of type *Error or *jsonscan.Error, or come from the Guard.
type decoder struct {
	jsonscan.Scanner
	texts [32]string // recent strings by hash, because items repeat them
	meta  int        // how many of kind and apiVersion are stated
	meter meter

	folded  bool // a member has the name of a known one in another case
	speller speller
	request bool // the body is a request
	partial partial
}

// document reads the whole body.
func (d *decoder) document(t *table, to message) error {
	i := jsonscan.Space(d.Text, 0)
	if i >= len(d.Text) {
		return d.Unexpected(i, "a value")
	}
	if d.Text[i] != '{' {
		return d.mismatch("", i, "a JSON object")
	}
	i, err := d.object(t, to, i, 1)
	if err != nil {
		return err
	}
	if err := d.End(i); err != nil {
		return err
	}
	return d.UTF8()
}

// object reads the object that begins at i, with depth levels including its own, into the message to. If to is nil, the
// object is checked in the same way, and not built.
func (d *decoder) object(t *table, to message, i, depth int) (int, error) {
	var seen, folded uint32
	var unknown names
	next := 0
	for first := true; ; first = false {
		start, more, err := d.Next(i, first, '}')
		if err != nil || !more {
			return start, err
		}
		m, name, value, err := d.memberAt(t, start, next)
		if err != nil {
			return value, err
		}
		if m < 0 {
			if m, err = d.fold(t, name, value); err != nil {
				return value, err
			}
			if m < 0 {
				if i, err = d.unknown(t, to, &unknown, string(name), value, depth); err != nil {
					return i, err
				}
				continue
			}
			folded |= 1 << m
		}
		next = m + 1
		f := &t.fields[m]
		if seen&(1<<m) != 0 {
			return i, twice(f.name, value, folded&(1<<m) != 0)
		}
		seen |= 1 << m
		if to.isNil() {
			i, err = d.checkField(t, f, value, depth)
		} else {
			i, err = d.field(t, f, to, value, depth)
		}
		if err != nil {
			return i, err
		}
	}
}

// memberAt reads the name of the member at i, and returns its position in t.fields, or -1, and the index of its value.
// next is where table.member begins.
func (d *decoder) memberAt(t *table, i, next int) (m int, name []byte, value int, err error) {
	end, value, err := d.Name(i)
	if err != nil {
		return -1, nil, value, err
	}
	name = d.Text[i+1 : end-1]
	m = t.member(name, next)
	if m < 0 && bytes.IndexByte(name, '\\') >= 0 {
		if name, err = d.Unescape(i, end); err == nil {
			err = d.meter.text(len(name))
		}
		if err != nil {
			return -1, nil, value, err
		}
		m = t.member(name, next)
	}
	return m, name, value, nil
}

// fold returns the position of the member that has a name in another case, whose value begins at i, or -1. In an
// answer, Cluster API takes it for that member, so that it is that member; a request is sent on as it is, to extensions
// that may not take it for that, so that it may not have one.
func (d *decoder) fold(t *table, name []byte, i int) (m int, err error) {
	if m = t.fold(name); m < 0 {
		return m, nil
	}
	if d.request {
		return m, onlyInCase(printable(string(name)), i, t.fields[m].name)
	}
	d.folded = true
	return m, nil
}

// names are the names of unknown members of one object, by what they are in any case.
type names map[string]string

// add adds the name of a member at path. An error says that the object has that name already, in this case or another:
// a later version of the schema may know it.
func (n *names) add(name, path string, offset int) error {
	folded := jsonscan.Fold(name)
	switch other, ok := (*n)[folded]; {
	case other == name && ok:
		return twice(path, offset, false)
	case ok:
		return onlyInCase(path, offset, other)
	}
	if *n == nil {
		*n = names{}
	}
	(*n)[folded] = name
	return nil
}

// addKey adds a key of a map, whose case matters.
func (n *names) addKey(key string, offset int) error {
	if _, ok := (*n)[key]; ok {
		return twice(printable(key), offset, false)
	}
	if *n == nil {
		*n = names{}
	}
	(*n)[key] = key
	return nil
}

// unknown keeps a member that the schema does not know, or its name alone if to is nil. all are those of the object.
func (d *decoder) unknown(t *table, to message, all *names, name string, i, depth int) (int, error) {
	cost := unknownCost + 2*len(name)
	if *all == nil {
		cost += 2 * mapCost
	}
	if err := d.meter.element(cost); err != nil {
		return i, err
	}
	if err := all.add(name, printable(name), i); err != nil {
		return i, err
	}
	older, ok := t.older.member(name)
	if ok {
		name = older.name
	}
	raw, end, err := d.raw(older.value, i, depth)
	if err != nil {
		return end, in(err, printable(name))
	}
	if to.isNil() {
		return end, d.addUnknown(t, []byte(name), i, end)
	}
	keep(t.unknownOf(to), name, raw)
	d.speller.unknown(t, name)
	return end, nil
}

func keep(members *map[string]*hooksv1alpha1.JSON, name string, raw []byte) {
	if *members == nil {
		*members = map[string]*hooksv1alpha1.JSON{}
	}
	(*members)[name] = &hooksv1alpha1.JSON{Raw: raw}
}

// field reads the value of a member that the schema knows.
func (d *decoder) field(t *table, f *field, to message, i, depth int) (int, error) {
	if d.Text[i] == 'n' {
		end, err := d.Literal(i, "null")
		if err == nil && f.always && f.shape == shapeList {
			// It is written as null again, where an absent list is written as [].
			keep(t.unknownOf(to), f.name, d.Text[i:end:end])
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
		*pointer[string](to, f.index) = s
		return end, err
	case shapeEnum:
		return d.enumField(f, to, i)
	case shapeInt32:
		n, end, err := d.int32At(f.name, i)
		*pointer[int32](to, f.index) = n
		return end, err
	case shapeOptionalInt:
		n, end, err := d.int32At(f.name, i)
		*pointer[*int32](to, f.index) = &n
		return end, err
	case shapeBool:
		v, end, err := d.boolAt(f.name, i)
		*pointer[bool](to, f.index) = v
		return end, err
	case shapeOptionalBool:
		v, end, err := d.boolAt(f.name, i)
		*pointer[*bool](to, f.index) = &v
		return end, err
	case shapeBytes:
		return d.bytesField(f, to, i)
	case shapeStringList:
		return d.stringList(f, to, i)
	case shapeStringMap:
		return d.mapField(f, to, i)
	case shapeRaw, shapeJSON:
		return d.rawField(f, to, i, depth)
	case shapeMessage:
		return d.messageField(f, to, i, depth+1)
	default:
		if d.partial.on && f.skipped && d.meta == 2 {
			return d.skippedList(f, i, depth+1)
		}
		return d.list(f, to, i, depth+1)
	}
}

// rawField reads an object or a free value, which stays as it is.
func (d *decoder) rawField(f *field, to message, i, depth int) (int, error) {
	if err := d.meter.text(rawCost); err != nil {
		return i, err
	}
	raw, end, err := d.raw(f.form, i, depth)
	if err != nil {
		return end, in(err, f.name)
	}
	if f.shape == shapeRaw {
		*pointer[*hooksv1alpha1.RawExtension](to, f.index) = &hooksv1alpha1.RawExtension{Raw: raw}
	} else {
		*pointer[*hooksv1alpha1.JSON](to, f.index) = &hooksv1alpha1.JSON{Raw: raw}
	}
	return end, nil
}

// raw returns the text of a value, with the names that its form knows, if it has one.
func (d *decoder) raw(of *form, i, depth int) (raw []byte, end int, err error) {
	if of != nil {
		r := formReader{Scanner: d.Scanner, meter: d.meter} // copies, because with pointers d would be on the heap
		raw, end, err = r.read(of, i, depth)
		d.Scanner, d.meter = r.Scanner, r.meter
		return raw, end, err
	}
	if end, err = d.Value(i, depth); err != nil {
		return nil, end, err
	}
	return d.Text[i:end:end], end, nil
}

// messageField reads an object of the envelope.
func (d *decoder) messageField(f *field, to message, i, depth int) (int, error) {
	if err := d.meter.text(f.message.cost); err != nil {
		return i, err
	}
	m := newMessage(f.message)
	to.setChild(f, m)
	return d.objectField(f, m, i, depth)
}

// objectField reads the value of a member as an object, into the message m, or nowhere if m is nil.
func (d *decoder) objectField(f *field, m message, i, depth int) (int, error) {
	if d.Text[i] != '{' {
		return i, d.mismatch(f.name, i, "an object")
	}
	end, err := d.object(f.message, m, i, depth)
	if err != nil {
		return end, in(err, f.name)
	}
	return end, nil
}

// list reads an array of objects.
func (d *decoder) list(f *field, to message, i, depth int) (int, error) {
	return d.elements(f, i, f.message.cost, func(i int) (int, error) {
		m := newMessage(f.message)
		to.appendChild(f, m)
		return d.object(f.message, m, i, depth+1)
	})
}

// elements reads an array of objects, each by a call of one, and counts cost bytes for each.
func (d *decoder) elements(f *field, i, cost int, one func(i int) (int, error)) (int, error) {
	if d.Text[i] != '[' {
		return i, d.mismatch(f.name, i, "an array")
	}
	for n := 0; ; n++ {
		next, more, err := d.Next(i, n == 0, ']')
		if err != nil || !more {
			return next, err
		}
		if d.Text[next] != '{' {
			return next, d.mismatch(f.name+element(n), next, "an object")
		}
		if err := d.meter.element(cost); err != nil {
			return next, err
		}
		if i, err = one(next); err != nil {
			return i, in(err, f.name+element(n))
		}
	}
}

// stringList reads an array of strings.
func (d *decoder) stringList(f *field, to message, i int) (int, error) {
	if d.Text[i] != '[' {
		return i, d.mismatch(f.name, i, "an array")
	}
	texts := pointer[[]string](to, f.index)
	for n := 0; ; n++ {
		next, more, err := d.Next(i, n == 0, ']')
		if err != nil || !more {
			return next, err
		}
		if err := d.meter.element(stringCost); err != nil {
			return next, err
		}
		var s string
		if s, i, err = d.stringAt(f.name+element(n), next); err != nil {
			return i, err
		}
		*texts = append(*texts, s)
	}
}

// mapField reads an object whose values are strings.
func (d *decoder) mapField(f *field, to message, i int) (int, error) {
	if d.Text[i] != '{' {
		return i, d.mismatch(f.name, i, "an object")
	}
	if err := d.meter.text(mapCost); err != nil {
		return i, err
	}
	entries := map[string]string{}
	*pointer[map[string]string](to, f.index) = entries
	for first := true; ; first = false {
		start, more, err := d.Next(i, first, '}')
		if err != nil || !more {
			return start, err
		}
		end, value, err := d.Name(start)
		if err != nil {
			return value, err
		}
		key, _, err := d.String(start)
		if err == nil {
			err = d.meter.text(len(key))
		}
		if err != nil {
			return end, err
		}
		if i, err = d.entry(f, entries, string(key), value); err != nil {
			return i, err
		}
	}
}

// entry reads the value of one key of a map.
func (d *decoder) entry(f *field, entries map[string]string, key string, i int) (int, error) {
	if _, ok := entries[key]; ok {
		return i, wrong(f.name+entry(key), i, "occurs twice in one object")
	}
	if err := d.meter.element(entryCost); err != nil {
		return i, err
	}
	switch d.Text[i] {
	case 'n': // as for encoding/json, an entry with an empty string
		entries[key] = ""
		return d.Literal(i, "null")
	case '"':
		text, end, err := d.String(i)
		if err == nil {
			err = d.meter.text(len(text))
		}
		if err == nil {
			entries[key] = string(text)
		}
		return end, err
	}
	return i, d.mismatch(f.name+entry(key), i, "a string")
}
