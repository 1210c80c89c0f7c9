// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// shape is the form of a member in JSON, and the Go type of its field.
type shape uint8

const (
	shapeTypeMeta     shape = iota // kind and apiVersion: no field, one allowed text
	shapeString                    // string
	shapeEnum                      // an enum type
	shapeInt32                     // int32
	shapeOptionalInt               // *int32
	shapeBool                      // bool
	shapeOptionalBool              // *bool
	shapeBytes                     // []byte, base64 in JSON; nil is absent
	shapeStringList                // []string
	shapeStringMap                 // map[string]string
	shapeRaw                       // *RawExtension, inline
	shapeJSON                      // *JSON, inline
	shapeMessage                   // *T, an object
	shapeList                      // []*T, an array of objects
)

// field is one member of a message.
type field struct {
	name   string
	prefix string // written before the value: `"name":`
	shape  shape
	always bool // written even when empty
	index  int  // of the field in the Go struct; the shape tells its type

	tag       uint32 // on the wire, if it is of wire type LEN
	skipped   bool   // its elements are left out of partial messages
	namespace bool   // of the holder of such an element

	text    string   // shapeTypeMeta: the only text allowed
	enum    []string // shapeEnum: texts by number
	message *table   // shapeMessage, shapeList
	form    *form    // shapeJSON: of a value whose members Cluster API knows
}

// table describes a message type.
type table struct {
	name    string
	request bool         // of a hook
	goType  reflect.Type // the struct
	fields  []field      // in the order in which they are written, at most 32
	unknown int          // index of unknown_members in the Go struct
	older   *form        // of the unknown members that an older Cluster API knows, or nil
	// unknownTag is the tag of an entry of unknown_members on the wire.
	unknownTag uint32

	cost int // bytes that a list needs for an element
}

// member returns the position in t.fields of the member of that name, or -1. It searches from next, because members
// mostly come in the order of the schema.
func (t *table) member(name []byte, next int) int {
	for i := next; i < len(t.fields); i++ {
		if string(name) == t.fields[i].name {
			return i
		}
	}
	for i := range next {
		if string(name) == t.fields[i].name {
			return i
		}
	}
	return -1
}

// fold returns the position in t.fields of the member whose name differs from name, one that member has not found, only
// in case, or -1. Go's encoding/json takes one for the other.
func (t *table) fold(name []byte) int {
	for i := range t.fields {
		if bytes.EqualFold(name, []byte(t.fields[i].name)) {
			return i
		}
	}
	return -1
}

// unknownOf returns the unknown members of a message.
func (t *table) unknownOf(m message) *map[string]*hooksv1alpha1.JSON {
	return pointer[map[string]*hooksv1alpha1.JSON](m, t.unknown)
}

// builder makes one table for each message type.
type builder struct{ tables map[reflect.Type]*table }

func newBuilder() *builder { return &builder{tables: map[reflect.Type]*table{}} }

// envelope makes the table of a request or an answer. Only these have the members kind and apiVersion.
func (b *builder) envelope(mt protoreflect.MessageType, apiVersion string) *table {
	t := b.table(mt.Descriptor(), reflect.TypeOf(mt.Zero().Interface()).Elem())
	if len(t.fields) > 0 && t.fields[0].shape == shapeTypeMeta {
		return t
	}
	kind := field{name: "kind", prefix: `"kind":`, text: t.name, always: true}
	version := field{name: "apiVersion", prefix: `"apiVersion":`, text: apiVersion, always: true}
	for i := range t.fields {
		t.fields[i].skipped = isSkipped(&t.fields[i])
	}
	t.fields = append([]field{kind, version}, t.fields...)
	return t
}

func (b *builder) table(md protoreflect.MessageDescriptor, goType reflect.Type) *table {
	if t, ok := b.tables[goType]; ok {
		return t
	}
	t := &table{
		name: string(md.Name()), goType: goType, cost: int(goType.Size()) + pointerCost, older: olderOf(md),
	}
	b.tables[goType] = t

	hasUnknown := false
	fields := structFields(goType)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f, ok := fields[string(fd.Name())]
		switch {
		case !ok:
			panic(fmt.Sprintf("codec: %s has no field in %s", fd.FullName(), goType))
		case fd.Name() == "unknown_members":
			t.unknown, hasUnknown = f.Index[0], f.Type == reflect.TypeFor[map[string]*hooksv1alpha1.JSON]()
			t.unknownTag = tagOf(fd.Number())
		case !catalog.InJSON(fd):
		default:
			t.fields = append(t.fields, b.field(fd, f))
		}
	}
	if !hasUnknown || len(t.fields) > 30 {
		panic(fmt.Sprintf("codec: %s has no field unknown_members, or more than 30 members", md.FullName()))
	}
	return t
}

func (b *builder) field(fd protoreflect.FieldDescriptor, sf reflect.StructField) field {
	f := field{name: fd.JSONName(), index: sf.Index[0], always: AlwaysWritten(fd), tag: tagOf(fd.Number())}
	f.namespace = fd.ContainingMessage().Name() == holderReference && fd.Name() == "namespace"
	f.prefix = string(append(jsonscan.AppendString(nil, f.name), ':'))
	f.form = formOf(fd)
	var ok bool
	if f.shape, ok = goShape(fd, sf.Type); !ok {
		panic(fmt.Sprintf("codec: %s has a type that cannot be represented in JSON", fd.FullName()))
	}
	switch f.shape {
	case shapeEnum:
		f.enum = EnumTexts(fd.Enum())
	case shapeMessage:
		f.message = b.table(fd.Message(), sf.Type.Elem())
	case shapeList:
		f.message = b.table(fd.Message(), sf.Type.Elem().Elem())
	}
	if f.always && (f.shape == shapeOptionalInt || f.shape == shapeOptionalBool) {
		panic(fmt.Sprintf("codec: %s cannot be both optional and always written", fd.FullName()))
	}
	return f
}

// structFields returns the fields of a generated struct by their names in the schema, read from the struct tags.
func structFields(goType reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for f := range goType.Fields() {
		for part := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				fields[name] = f
			}
		}
	}
	return fields
}
