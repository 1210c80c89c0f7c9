// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"

	"sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

const (
	group = "cluster.x-k8s.io"

	// dataAnnotation is the annotation in which Cluster API's converters keep the other version of an object. It is
	// read but not passed on, because Cluster API removes it from the requests of hooks.
	dataAnnotation = "cluster.x-k8s.io/conversion-data"
)

// object is a decoded object.
type object struct {
	value    any    // a pointer to the Go type of its version
	metadata []byte // as written, without dataAnnotation, or nil
	data     string // the value of dataAnnotation
	unknown  []member
}

// decodeObject decodes an object except for its metadata, which is the same in all versions. The metadata and the
// unknown members share memory with the text.
//
// Values are decoded as the API server does it: like encoding/json, but names of members are case-sensitive.
func decodeObject(b []byte, t reflect.Type, m *jsonpatch.Meter) (*object, error) {
	if err := m.Text(len(b)); err != nil {
		return nil, err
	}
	v := reflect.New(t)
	o := &object{value: v.Interface()}
	w := &walker{Scanner: jsonscan.Scanner{Text: b, Step: m.Guard.Step}, meter: m}
	i := jsonscan.Space(b, 0)
	if w.At(i) != '{' {
		return nil, w.Unexpected(i, "an object")
	}
	i, err := members(&w.Scanner, i, func(name, end, i int) (int, error) {
		f := fieldsOf(t).named(b[name:end])
		if f == nil {
			return w.keep(name, end, i)
		}
		switch f.name {
		case "apiVersion", "kind":
			return w.Value(i, 1)
		case "metadata":
			return o.readMetadata(w, i)
		}
		after, err := w.below(step{name: f.name, index: isMember}, i, f.typ)
		if err != nil {
			return after, err
		}
		err = json.UnmarshalCaseSensitivePreserveInts(b[i:after], f.in(v.Elem()).Addr().Interface())
		if err != nil {
			finder := &walker{Scanner: jsonscan.Scanner{Text: b}, meter: &jsonpatch.Meter{}, try: true}
			if _, found := finder.below(step{name: f.name, index: isMember}, i, f.typ); found != nil {
				err = found
			}
		}
		return after, err
	})
	if err == nil {
		err = w.End(i)
	}
	o.unknown = w.unknown
	return o, err
}

// readMetadata reads the part of the metadata that conversions need.
func (o *object) readMetadata(w *walker, i int) (int, error) {
	switch w.At(i) {
	case 'n':
		return w.Literal(i, "null")
	case '{':
	default:
		return i, &mismatch{path: "metadata", want: "an object"}
	}
	cut := -1 // where the annotation begins
	var cutEnd int
	after, err := members(&w.Scanner, i, func(name, end, i int) (int, error) {
		switch {
		case jsonscan.Equal(w.Text[name:end], "namespace") && w.At(i) != 'n':
			if w.At(i) != '"' {
				return i, &mismatch{path: "metadata.namespace", want: "a string"}
			}
			after, err := w.Value(i, 2)
			if err == nil {
				setNamespace(o.value, unquote(w.Text[i:after]))
			}
			return after, err
		case jsonscan.Equal(w.Text[name:end], "annotations") && w.At(i) == '{':
			return members(&w.Scanner, i, func(name, end, i int) (int, error) {
				after, err := w.Value(i, 3)
				if err != nil || !jsonscan.Equal(w.Text[name:end], dataAnnotation) {
					return after, err
				}
				if w.At(i) != '"' {
					return i, &mismatch{path: "metadata.annotations[*]", want: "a string"}
				}
				cut, cutEnd = name, after
				o.data = unquote(w.Text[i:after])
				return after, nil
			})
		}
		return w.Value(i, 2)
	})
	if err != nil {
		return after, err
	}
	o.metadata = w.Text[i:after]
	if cut >= 0 {
		// The comma before the annotation goes too, or the one after it if it is the first.
		if begin := lastNonSpace(w.Text, cut); w.Text[begin] == ',' {
			cut = begin
		} else if cutEnd = jsonscan.Space(w.Text, cutEnd); w.Text[cutEnd] == ',' {
			cutEnd++
		}
		o.metadata = slices.Concat(w.Text[i:cut], w.Text[cutEnd:after])
	}
	return after, nil
}

func lastNonSpace(t []byte, before int) int {
	for before--; t[before] == ' ' || t[before] == '\n' || t[before] == '\t' || t[before] == '\r'; before-- {
	}
	return before
}
