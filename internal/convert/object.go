// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"slices"

	"github.com/hookgate/hookgate/internal/jsonscan"
)

const (
	group = "cluster.x-k8s.io"

	// dataAnnotation is the annotation in which Cluster API's converters keep the other version of an object. It is
	// read but not passed on, because Cluster API removes it from the requests of hooks.
	dataAnnotation = "cluster.x-k8s.io/conversion-data"
)

// object is a decoded object.
type object struct {
	value    any    // a pointer to the Go type of its version; its strings share memory with the text
	metadata []byte // as written, without dataAnnotation, or nil
	data     string // the value of dataAnnotation
	size     int    // that the text has when it is written, about
	unknown  []member
}

// decodeObject decodes an object except for its metadata, which is the same in all versions. The object refers to the
// memory of the arena.
func decodeObject(b []byte, s *schema, m *meter, a *arena) (*object, error) {
	o := &object{size: len(b) + len(b)/4 + 64}
	if err := m.text(len(b)); err != nil {
		return nil, err
	}
	if len(b) >= meterStep {
		// What is written has these as <, and so on.
		longer := 5 * (bytes.Count(b, []byte("<")) + bytes.Count(b, []byte(">")) + bytes.Count(b, []byte("&")))
		if err := m.text(longer); err != nil {
			return nil, err
		}
		o.size += longer
	}
	v := a.one(s)
	o.value = v.pointer(s)
	d := newDecoder(b, m, a)
	i := jsonscan.Space(b, 0)
	if d.At(i) != '{' {
		return nil, d.Unexpected(i, "an object")
	}
	i, err := members(&d.Scanner, i, func(name, end, i int) (int, error) {
		f := d.field(s, name, end)
		if f == nil {
			return d.keep(name, end, i)
		}
		switch f.name {
		case "apiVersion", "kind":
			return d.Value(i, 1)
		case "metadata":
			return o.readMetadata(d, i)
		}
		return d.below(step{name: f.name, index: isMember}, i, f.schema, f.in(v))
	})
	if err == nil {
		err = d.End(i)
	}
	o.unknown = d.unknown
	return o, err
}

// readMetadata reads the part of the metadata that conversions need.
func (o *object) readMetadata(d *decoder, i int) (int, error) {
	switch d.At(i) {
	case 'n':
		return d.Literal(i, "null")
	case '{':
	default:
		return i, &mismatch{path: "metadata", want: "an object"}
	}
	cut := -1 // where the annotation begins
	var cutEnd int
	after, err := members(&d.Scanner, i, func(name, end, i int) (int, error) {
		switch {
		case jsonscan.Equal(d.Text[name:end], "namespace") && d.At(i) != 'n':
			if d.At(i) != '"' {
				return i, &mismatch{path: "metadata.namespace", want: "a string"}
			}
			namespace, after, err := d.str(i)
			setNamespace(o.value, namespace)
			return after, err
		case jsonscan.Equal(d.Text[name:end], "annotations") && d.At(i) == '{':
			return members(&d.Scanner, i, func(name, end, i int) (int, error) {
				after, err := d.Value(i, 3)
				if err != nil || !jsonscan.Equal(d.Text[name:end], dataAnnotation) {
					return after, err
				}
				if d.At(i) != '"' {
					return i, &mismatch{path: "metadata.annotations[*]", want: "a string"}
				}
				cut, cutEnd = name, after
				o.data = d.unquote(i, after)
				return after, nil
			})
		}
		return d.Value(i, 2)
	})
	if err != nil {
		return after, err
	}
	o.metadata = d.Text[i:after]
	if cut >= 0 {
		// The comma before the annotation goes too, or the one after it if it is the first.
		if begin := lastNonSpace(d.Text, cut); d.Text[begin] == ',' {
			cut = begin
		} else if cutEnd = jsonscan.Space(d.Text, cutEnd); d.Text[cutEnd] == ',' {
			cutEnd++
		}
		o.metadata = slices.Concat(d.Text[i:cut], d.Text[cutEnd:after])
	}
	return after, nil
}

func lastNonSpace(t []byte, before int) int {
	for before--; t[before] == ' ' || t[before] == '\n' || t[before] == '\t' || t[before] == '\r'; before-- {
	}
	return before
}
