// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// shape is the form of a type in JSON.
type shape uint8

const (
	shapeString shape = iota
	shapeBool
	shapeInt
	shapeObject  // a struct: the members are known
	shapeList    // a slice
	shapeMap     // a map with strings as keys
	shapePointer // nil is absent
	shapeRaw     // any JSON, verbatim
	shapeOwn     // a type without members that implements json.Unmarshaler
)

// schema describes a Go type, for decoding, comparing and placing members.
type schema struct {
	typ    reflect.Type
	shape  shape
	elem   *schema           // of lists, maps and pointers
	fields []*field          // of objects, in their order
	byName map[string]*field // of objects
}

// field is a member of an object.
type field struct {
	name     string // in JSON
	index    []int  // in Go; more than one for an embedded field
	omitZero bool   // tagged omitzero
	schema   *schema
}

var (
	rawType         = reflect.TypeFor[apiextensionsv1.JSON]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// schemaOf returns the schema of a type, which must not contain itself.
func schemaOf(t reflect.Type) *schema {
	s := &schema{typ: t}
	switch {
	case t == rawType:
		s.shape = shapeRaw
	case t.Kind() == reflect.Pointer:
		s.shape = shapePointer
		s.elem = schemaOf(t.Elem())
	case reflect.PointerTo(t).Implements(unmarshalerType):
		s.shape = shapeOwn
	case t.Kind() == reflect.String:
		s.shape = shapeString
	case t.Kind() == reflect.Bool:
		s.shape = shapeBool
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64:
		s.shape = shapeInt
	case t.Kind() == reflect.Struct:
		s.shape = shapeObject
		s.byName = map[string]*field{}
		s.addFields(t, nil)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		s.shape = shapeList
		s.elem = schemaOf(t.Elem())
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		s.shape = shapeMap
		s.elem = schemaOf(t.Elem())
	default:
		panic("convert: no schema for " + t.String()) // a test covers all types
	}
	return s
}

func (s *schema) addFields(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(append([]int(nil), prefix...), i)
		if f.Anonymous && name == "" {
			s.addFields(f.Type, index)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		added := &field{name: name, index: index, omitZero: strings.Contains(options, "omitzero"),
			schema: schemaOf(f.Type)}
		s.fields = append(s.fields, added)
		s.byName[name] = added
	}
}

// in returns the field f of v.
func (f *field) in(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// plain returns the schema behind pointers.
func (s *schema) plain() *schema {
	for s.shape == shapePointer {
		s = s.elem
	}
	return s
}
