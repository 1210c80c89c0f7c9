// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/jsonscan"
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
	index  int  // of the field in the Go struct

	outlined  bool // its elements are left out of outlines
	namespace bool // of the holder of such an element

	text    string   // shapeTypeMeta: the only text allowed
	enum    []string // shapeEnum: texts by number
	message *table   // shapeMessage, shapeList
}

// table describes a message type. Fields are accessed by their index in the Go struct with package reflect, which
// costs a few nanoseconds each, where protoreflect's Get and Set cost a few tens.
type table struct {
	name    string
	goType  reflect.Type // the struct
	id      int          // from 0, less than *tables
	tables  *int         // number of tables
	fields  []field      // in the order in which they are written, at most 32
	unknown int          // index of unknown_members in the Go struct

	sliceType reflect.Type // of []goType
	cost      int          // bytes that a list needs for an element
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

// unknownOf returns the unknown members of a message.
func (t *table) unknownOf(rv reflect.Value) *map[string]*hooksv1alpha1.JSON {
	return pointer[map[string]*hooksv1alpha1.JSON](rv, t.unknown)
}

// pointer returns the address of a field whose type is T.
func pointer[T any](rv reflect.Value, index int) *T {
	return rv.Field(index).Addr().Interface().(*T)
}

// builder makes one table for each message type.
type builder struct {
	tables map[reflect.Type]*table
	count  *int
}

func newBuilder() *builder { return &builder{tables: map[reflect.Type]*table{}, count: new(int)} }

// envelope makes the table of a request or an answer. Only these have the members kind and apiVersion.
func (b *builder) envelope(mt protoreflect.MessageType, apiVersion string) {
	t := b.table(mt.Descriptor(), reflect.TypeOf(mt.Zero().Interface()).Elem())
	if len(t.fields) > 0 && t.fields[0].shape == shapeTypeMeta {
		return
	}
	kind := field{name: "kind", prefix: `"kind":`, text: t.name, always: true}
	version := field{name: "apiVersion", prefix: `"apiVersion":`, text: apiVersion, always: true}
	for i := range t.fields {
		t.fields[i].outlined = isOutlined(&t.fields[i])
	}
	t.fields = append([]field{kind, version}, t.fields...)
}

func (b *builder) table(md protoreflect.MessageDescriptor, goType reflect.Type) *table {
	if t, ok := b.tables[goType]; ok {
		return t
	}
	t := &table{
		name: string(md.Name()), goType: goType, sliceType: reflect.SliceOf(goType), unknown: -1,
		id: *b.count, tables: b.count, cost: int(goType.Size()) + pointerCost,
	}
	*b.count++
	b.tables[goType] = t

	indexes := fieldIndexes(goType)
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		index, ok := indexes[string(fd.Name())]
		switch {
		case !ok:
			panic(fmt.Sprintf("codec: %s has no field in %s", fd.FullName(), goType))
		case fd.Name() == "unknown_members":
			t.unknown = index
		case !catalog.InJSON(fd):
		default:
			t.fields = append(t.fields, b.field(fd, index, goType.Field(index).Type))
		}
	}
	if t.unknown < 0 || len(t.fields) > 30 {
		panic(fmt.Sprintf("codec: %s has no unknown_members, or more than 30 members", md.FullName()))
	}
	return t
}

func (b *builder) field(fd protoreflect.FieldDescriptor, index int, goType reflect.Type) field {
	f := field{name: fd.JSONName(), index: index, always: AlwaysWritten(fd)}
	f.namespace = fd.ContainingMessage().Name() == holderReference && fd.Name() == "namespace"
	f.prefix = string(append(jsonscan.AppendString(nil, f.name), ':'))
	switch reflect.Zero(goType).Interface().(type) {
	case string:
		f.shape = shapeString
	case int32:
		f.shape = shapeInt32
	case bool:
		f.shape = shapeBool
	case []string:
		f.shape = shapeStringList
	case *int32:
		f.shape = shapeOptionalInt
	case *bool:
		f.shape = shapeOptionalBool
	case []byte:
		f.shape = shapeBytes
	case map[string]string:
		f.shape = shapeStringMap
	case *hooksv1alpha1.RawExtension:
		f.shape = shapeRaw
	case *hooksv1alpha1.JSON:
		f.shape = shapeJSON
	default:
		switch {
		case fd.Kind() == protoreflect.EnumKind && !fd.IsList() && goType.Kind() == reflect.Int32:
			f.shape, f.enum = shapeEnum, EnumTexts(fd.Enum())
		case fd.Kind() == protoreflect.MessageKind && fd.IsList():
			f.shape = shapeList
			f.message = b.table(fd.Message(), goType.Elem().Elem())
		case fd.Kind() == protoreflect.MessageKind && !fd.IsMap():
			f.shape = shapeMessage
			f.message = b.table(fd.Message(), goType.Elem())
		default:
			panic(fmt.Sprintf("codec: %s has a type without a form in JSON", fd.FullName()))
		}
	}
	if f.always && (f.shape == shapeOptionalInt || f.shape == shapeOptionalBool) {
		panic(fmt.Sprintf("codec: %s is optional and always written", fd.FullName()))
	}
	return f
}

// fieldIndexes returns the indexes of a generated struct's fields by their names in the schema, read from the struct
// tags.
func fieldIndexes(goType reflect.Type) map[string]int {
	indexes := map[string]int{}
	for i := range goType.NumField() {
		for part := range strings.SplitSeq(goType.Field(i).Tag.Get("protobuf"), ",") {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				indexes[name] = i
			}
		}
	}
	return indexes
}
