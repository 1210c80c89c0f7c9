// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding"
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

// schema describes a Go type, for decoding, comparing, writing and placing members.
type schema struct {
	typ    reflect.Type
	shape  shape
	size   uintptr
	elem   *schema           // of lists, maps and pointers
	fields []*field          // of objects, in their order
	byName map[string]*field // of objects

	saysZero bool // the type implements isZeroer
	slab     int  // the number of the schema in that of the whole object
	slabs    int  // the number of schemas in that of a whole object
}

// isZeroer is implemented by types that say themselves what omitzero leaves out.
type isZeroer interface{ IsZero() bool }

// field is a member of an object.
type field struct {
	name      string // in JSON
	key       string // the name as it is written, with the colon
	offset    uintptr
	omitEmpty bool // tagged omitempty
	omitZero  bool // tagged omitzero
	schema    *schema
}

var (
	rawType         = reflect.TypeFor[apiextensionsv1.JSON]()
	textsType       = reflect.TypeFor[map[string]string]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	textType        = reflect.TypeFor[encoding.TextMarshaler]()
	isZeroerType    = reflect.TypeFor[isZeroer]()
)

// schemaOf returns the schema of a type, which must not contain itself.
func schemaOf(t reflect.Type) *schema {
	var count int
	s := schemaWithin(t, &count)
	s.slabs = count
	return s
}

// schemaWithin returns the schema of a type, and adds the number of schemas in it to count.
func schemaWithin(t reflect.Type, count *int) *schema {
	pointer := reflect.PointerTo(t)
	s := &schema{typ: t, size: t.Size(), saysZero: pointer.Implements(isZeroerType), slab: *count}
	*count++
	switch {
	case t == rawType:
		s.shape = shapeRaw
	case t.Kind() == reflect.Pointer:
		s.shape = shapePointer
		s.elem = schemaWithin(t.Elem(), count)
	case pointer.Implements(unmarshalerType) && pointer.Implements(marshalerType) && t.Kind() == reflect.Struct:
		s.shape = shapeOwn
	case pointer.Implements(unmarshalerType) || pointer.Implements(marshalerType) || pointer.Implements(textType):
		panic("convert: half a form of its own for " + t.String())
	case t.Kind() == reflect.String:
		s.shape = shapeString
	case t.Kind() == reflect.Bool:
		s.shape = shapeBool
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64:
		s.shape = shapeInt
	case t.Kind() == reflect.Struct:
		s.shape = shapeObject
		s.byName = map[string]*field{}
		s.addFields(t, 0, count)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		s.shape = shapeList
		s.elem = schemaWithin(t.Elem(), count)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		s.shape = shapeMap
		s.elem = schemaWithin(t.Elem(), count)
	default:
		panic("convert: no schema for " + t.String()) // a test covers all types
	}
	return s
}

// addFields adds the fields of t, a struct that is embedded at offset.
func (s *schema) addFields(t reflect.Type, offset uintptr, count *int) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.addFields(f.Type, offset+f.Offset, count)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		added := &field{
			name: name, key: `"` + name + `":`, offset: offset + f.Offset,
			omitEmpty: strings.Contains(options, "omitempty"), omitZero: strings.Contains(options, "omitzero"),
			schema: schemaWithin(f.Type, count),
		}
		s.fields = append(s.fields, added)
		s.byName[name] = added
	}
}

// plain returns the schema behind pointers.
func (s *schema) plain() *schema {
	for s.shape == shapePointer {
		s = s.elem
	}
	return s
}
