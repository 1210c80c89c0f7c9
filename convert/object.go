// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/jsonscan"
)

const (
	group = "cluster.x-k8s.io"

	// dataAnnotation is what Cluster API's converters keep the other version of an object in. It is read where it is there, and
	// never handed on: Cluster API removes it from the requests of hooks.
	dataAnnotation = "cluster.x-k8s.io/conversion-data"
)

// header is what tells what an object is.
type header struct {
	apiVersion, kind string
}

// headerOf reads no further than it has to: what goes on unconverted is not scanned twice.
func headerOf(b []byte) (h header, err error) {
	s := jsonscan.Scanner{Text: b}
	i := jsonscan.Space(b, 0)
	if s.At(i) != '{' {
		return h, errors.New("it is not an object")
	}
	found := 0
	for first := true; found < 2; first = false {
		start, more, err := s.Next(i, first, '}')
		if err != nil || !more {
			return h, err
		}
		end, value, err := s.Name(start)
		if err != nil {
			return h, err
		}
		name, into := string(b[start+1:end-1]), (*string)(nil)
		switch name {
		case "apiVersion":
			into = &h.apiVersion
		case "kind":
			into = &h.kind
		}
		if into != nil && s.At(value) != '"' {
			return h, errors.New(name + " is not a string")
		}
		if i, err = s.Value(value, 1); err != nil {
			return h, err
		}
		if into != nil {
			*into = unquote(b[value:i])
			found++
		}
	}
	return h, nil
}

// source returns the version that the object has: "" if it is to be left alone because there is none, or because it has the
// wanted one. unstated is the version of an object that names neither version nor kind.
func source(t []byte, k *kind, at, to, unstated string) (string, error) {
	if i := jsonscan.Space(t, 0); i == len(t) || string(t[i:]) == "null" {
		return "", nil
	}
	h, err := headerOf(t)
	if err != nil {
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: %s", at, to, err.Error())
	}
	if h.apiVersion == "" && h.kind == "" && unstated != "" {
		if unstated == to {
			return "", nil
		}
		return unstated, nil
	}
	g, v, found := strings.Cut(h.apiVersion, "/")
	switch {
	case h.apiVersion == "":
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: it has no apiVersion, which tells what it is to be converted from", at, to)
	case !found || g != group:
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: its apiVersion is %q, not one of group %s", at, to, h.apiVersion, group)
	case v == to:
		return "", nil
	case h.kind != k.name:
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: its kind is %q, not %s", at, to, h.kind, k.name)
	}
	if from, _ := k.sides(v); from == nil {
		return "", hook.Errorf(hook.Conversion, "convert %s to %s: its version is %s, and only %s and %s of %s can be converted",
			at, to, shortened(v), V1Beta1, V1Beta2, group)
	}
	return v, nil
}

// object is one that was decoded.
type object struct {
	value    any    // a pointer to the Go type of its version
	metadata []byte // as it is written, without dataAnnotation; nil if there is none
	data     string
	unknown  []member
}

// decodeObject decodes an object but for its metadata, which is the same in all versions.
func decodeObject(b []byte, s *schema) (*object, error) {
	o := &object{}
	v := reflect.New(s.typ)
	o.value = v.Interface()
	d := newDecoder(b)
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
		return d.below(step{name: f.name, index: isMember}, i, f.schema, f.in(v.Elem()))
	})
	if err == nil {
		err = d.End(i)
	}
	o.unknown = d.unknown
	return o, err
}

// readMetadata reads what conversions need of the metadata.
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
		// The comma before it goes too, or the one behind it if it is the first.
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

// convertObject returns the object in the other version, and adds what it cannot express to lost. at names it in messages.
func (o *Objects) convertObject(t []byte, k *kind, from, at string, lost *lossSet) ([]byte, error) {
	src, dst := k.sides(from)
	decoded, err := decodeObject(t, src.schema)
	if err != nil {
		return nil, hook.Errorf(hook.InvalidRequest, "convert %s to %s: it is not a %s of %s: %s", at, dst.name, k.name, from, err.Error())
	}
	var restored any
	if decoded.data != "" && dst == k.hub {
		data, err := decodeObject([]byte(decoded.data), dst.schema)
		if err != nil {
			return nil, hook.Errorf(hook.InvalidRequest, "convert %s to %s: its annotation %s is not a %s of %s: %s",
				at, dst.name, dataAnnotation, k.name, dst.name, err.Error())
		}
		restored = data.value
	}
	converted, err := src.convert(decoded.value, restored, o.refs.APIVersion)
	if err != nil {
		return nil, conversionError(at, from, dst.name, err)
	}
	back, err := dst.convert(converted, nil, o.anyAPIVersion)
	if err != nil {
		return nil, conversionError(at, dst.name, from, err)
	}
	c := comparison{path: make([]step, 0, 16), lost: func(path []step) { lost.add(k.path + "." + pathOf(path)) }}
	srcValue, dstValue := reflect.ValueOf(decoded.value).Elem(), reflect.ValueOf(converted).Elem()
	c.compareObject(src.schema, srcValue, reflect.ValueOf(back).Elem())

	tree := &place{}
	for _, m := range decoded.unknown {
		if len(m.path) == 0 {
			continue // written as it is
		}
		if belongs(m, src.schema, dst.schema) {
			tree.add(m)
		} else {
			lost.add(k.path + "." + m.lossOf())
		}
	}
	out := make([]byte, 0, len(t)+len(t)/4+64)
	out = append(out, `{"kind":"`+k.name+`","apiVersion":"`+group+"/"+dst.name+`"`...)
	if decoded.metadata != nil {
		out = append(append(out, `,"metadata":`...), decoded.metadata...)
	}
	for _, f := range dst.schema.fields {
		if isHeader(f.name) {
			continue
		}
		below := tree.below[step{name: f.name, index: isMember}]
		if value := f.in(dstValue); !f.omitZero || below != nil || !value.IsZero() {
			written, err := json.Marshal(value.Addr().Interface())
			if err != nil {
				return nil, conversionError(at, from, dst.name, err)
			}
			out = append(out, `,"`+f.name+`":`...)
			if below != nil {
				out, _ = below.onto(out, &jsonscan.Scanner{Text: written}, 0, func(m member) { lost.add(k.path + "." + m.lossOf()) })
			} else {
				out = append(out, written...)
			}
		}
	}
	for _, m := range decoded.unknown {
		if len(m.path) == 0 {
			out = append(append(append(append(out, ','), m.key...), ':'), m.value...)
		}
	}
	return append(out, '}'), nil
}

// compareObject compares but what is not converted.
func (c *comparison) compareObject(s *schema, src, back reflect.Value) {
	for _, f := range s.fields {
		if !isHeader(f.name) {
			c.path = append(c.path[:0], step{name: f.name, index: isMember})
			c.compare(f.schema, f.in(src), f.in(back))
		}
	}
}

// isHeader tells whether a member of an object is the same in all versions, or written anew.
func isHeader(name string) bool { return name == "kind" || name == "apiVersion" || name == "metadata" }

// anyAPIVersion is for conversions whose result only tells what was lost: a version that nobody knows is.
func (o *Objects) anyAPIVersion(group, kind string) (string, error) {
	if v, err := o.refs.APIVersion(group, kind); err == nil {
		return v, nil
	}
	return group + "/", nil
}

func conversionError(at, from, to string, err error) error {
	kind := hook.Conversion
	var e *hook.Error
	if errors.As(err, &e) {
		kind = e.Kind
	}
	return hook.Errorf(kind, "convert %s from %s to %s: %s", at, from, to, err.Error()).WithCause(err)
}

// lossSet collects paths; its zero value is empty.
type lossSet struct {
	paths map[string]bool
}

func (l *lossSet) add(path string) {
	if l.paths == nil {
		l.paths = map[string]bool{}
	}
	l.paths[path] = true
}

// sorted returns the losses by path, nil if there are none.
func (l *lossSet) sorted() []string { return slices.Sorted(maps.Keys(l.paths)) }
