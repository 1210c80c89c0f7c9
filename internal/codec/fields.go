// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// message points to the generated struct of a message. Fields are reached by their offsets, as in the generated code's
// own runtime: with package reflect, a quarter of a Decode and a third of an Encode would be spent on that.
//
// This file has all that is unsafe about it. What keeps it safe is that each offset comes from the reflect.Type of the
// struct, together with a shape that goShape derives from the type of the field; a shape stands for one type.
type message struct{ p unsafe.Pointer }

// newMessage returns a new, empty message.
func newMessage(t *table) message { return message{reflect.New(t.goType).UnsafePointer()} }

// messageOf returns the struct that v, a pointer that is not nil, points to.
func messageOf(v reflect.Value) message { return message{v.UnsafePointer()} }

func (m message) isNil() bool { return m.p == nil }

// pointer returns the address of the field at offset, whose type is T, or has the memory layout of T: int32 for enums,
// message for pointers to messages, and []message for slices of these.
func pointer[T any](m message, offset uintptr) *T {
	return (*T)(unsafe.Add(m.p, offset))
}

// elementOf returns an element of a slice of the table's structs.
func elementOf(t *table, slice reflect.Value, i int) message {
	if i < 0 || i >= slice.Len() {
		panic(fmt.Sprintf("codec: element %d of %d", i, slice.Len()))
	}
	return message{unsafe.Add(slice.UnsafePointer(), uintptr(i)*t.goType.Size())}
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
