// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// fields has the members of a struct type, as encoding/json knows them.
type fields struct {
	all    []*field // in their order
	byName map[string]*field
	leaf   bool // the type reads its JSON itself
}

// field is a member of a struct type.
type field struct {
	name     string // in JSON
	typ      reflect.Type
	index    []int
	omitZero bool // tagged omitzero
}

// in returns the member f of v, a struct.
func (f *field) in(v reflect.Value) reflect.Value { return v.FieldByIndex(f.index) }

var (
	rawType         = reflect.TypeFor[apiextensionsv1.JSON]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	knownFields     sync.Map // *fields by reflect.Type
)

// fieldsOf returns the members of a struct type.
func fieldsOf(t reflect.Type) *fields {
	if known, ok := knownFields.Load(t); ok {
		return known.(*fields)
	}
	s := &fields{byName: map[string]*field{}, leaf: reflect.PointerTo(t).Implements(unmarshalerType)}
	if !s.leaf {
		s.add(t, nil)
	}
	knownFields.Store(t, s)
	return s
}

// add adds the members of t, a struct that is embedded at index.
func (s *fields) add(t reflect.Type, index []int) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := slices.Concat(index, f.Index)
		switch {
		case f.Anonymous && name == "":
			s.add(f.Type, at)
		case name != "" && name != "-":
			added := &field{name: name, typ: f.Type, index: at, omitZero: strings.Contains(options, "omitzero")}
			s.all = append(s.all, added)
			s.byName[name] = added
		}
	}
}

// isLeaf reports whether values of a type have no members, entries or elements: scalars, and structs that read their
// JSON themselves.
func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return false
	case reflect.Struct:
		return fieldsOf(t).leaf
	}
	return true
}

// pointedTo returns the type behind pointers.
func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
