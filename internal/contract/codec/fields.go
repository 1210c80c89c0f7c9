// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"iter"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// message is the generated struct of a message, or nil. Its fields are reached with package reflect.
type message struct{ v reflect.Value }

// newMessage returns a new, empty message.
func newMessage(t *table) message { return message{reflect.New(t.goType).Elem()} }

// messageOf returns the struct that v, a pointer, points to.
func messageOf(v reflect.Value) message { return message{v.Elem()} }

func (m message) isNil() bool { return !m.v.IsValid() }

// pointer returns the address of a field, whose shape says that its type is T.
func pointer[T any](m message, index int) *T {
	p, _ := reflect.TypeAssert[*T](m.v.Field(index).Addr())
	return p
}

// enum returns the number in a field of shapeEnum.
func (m message) enum(f *field) int32 { return int32(m.v.Field(f.index).Int()) }

func (m message) setEnum(f *field, n int) { m.v.Field(f.index).SetInt(int64(n)) }

// child returns the message in a field of shapeMessage, or nil.
func (m message) child(f *field) message { return message{m.v.Field(f.index).Elem()} }

func (m message) setChild(f *field, child message) { m.v.Field(f.index).Set(child.v.Addr()) }

// children returns the messages in a field of shapeList.
func (m message) children(f *field) iter.Seq2[int, message] {
	return func(yield func(int, message) bool) {
		list := m.v.Field(f.index)
		for i := range list.Len() {
			if !yield(i, message{list.Index(i).Elem()}) {
				return
			}
		}
	}
}

// length returns the number of messages in a field of shapeList.
func (m message) length(f *field) int { return m.v.Field(f.index).Len() }

// appendChild adds a message to a field of shapeList.
func (m message) appendChild(f *field, child message) {
	list := m.v.Field(f.index)
	n := list.Len()
	if n == list.Cap() {
		list.Grow(max(n, 4))
	}
	list.SetLen(n + 1)
	list.Index(n).Set(child.v.Addr())
}

// goShape returns the shape of a field with that Go type. ok is false if there is none.
func goShape(fd protoreflect.FieldDescriptor, goType reflect.Type) (s shape, ok bool) {
	switch goType {
	case reflect.TypeFor[string]():
		return shapeString, true
	case reflect.TypeFor[int32]():
		return shapeInt32, true
	case reflect.TypeFor[bool]():
		return shapeBool, true
	case reflect.TypeFor[[]string]():
		return shapeStringList, true
	case reflect.TypeFor[*int32]():
		return shapeOptionalInt, true
	case reflect.TypeFor[*bool]():
		return shapeOptionalBool, true
	case reflect.TypeFor[[]byte]():
		return shapeBytes, true
	case reflect.TypeFor[map[string]string]():
		return shapeStringMap, true
	case reflect.TypeFor[*hooksv1alpha1.RawExtension]():
		return shapeRaw, true
	case reflect.TypeFor[*hooksv1alpha1.JSON]():
		return shapeJSON, true
	}
	switch {
	case fd.Kind() == protoreflect.EnumKind:
		return shapeEnum, goType.Kind() == reflect.Int32
	case fd.Kind() != protoreflect.MessageKind || fd.IsMap():
		return 0, false
	case fd.IsList():
		return shapeList, goType.Kind() == reflect.Slice && isStruct(goType.Elem())
	}
	return shapeMessage, isStruct(goType)
}

// isStruct reports whether a type is that of pointers to structs.
func isStruct(goType reflect.Type) bool {
	return goType.Kind() == reflect.Pointer && goType.Elem().Kind() == reflect.Struct
}
