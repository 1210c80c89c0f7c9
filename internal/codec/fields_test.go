// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"reflect"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// TestFieldsByOffset writes each field of each message by its offset and reads it with protoreflect, and the other way
// round.
func TestFieldsByOffset(t *testing.T) {
	for goType, tab := range New(catalog.New()).tables {
		t.Run(tab.name, func(t *testing.T) {
			known := func() (message, protoreflect.Message) {
				v := reflect.New(goType)
				return messageOf(v), v.Interface().(proto.Message).ProtoReflect()
			}
			for i := range tab.fields {
				f := &tab.fields[i]
				if f.shape == shapeTypeMeta {
					continue
				}
				byOffset, reflected := known()
				put(t, f, byOffset)
				fd := onlyField(t, reflected)
				if fd.JSONName() != f.name {
					t.Fatalf("wrote %s, want %s", fd.Name(), f.name)
				}
				value := reflected.Get(fd)
				if got, want := reflectedValue(f, value), get(f, byOffset); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: wrote %v, and read %v", f.name, want, got)
				}
				byOffset, reflected = known()
				reflected.Set(fd, value)
				if got, want := get(f, byOffset), reflectedValue(f, value); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: read %v, want %v", f.name, got, want)
				}
			}
			byOffset, reflected := known()
			*tab.unknownOf(byOffset) = map[string]*hooksv1alpha1.JSON{"new": {Raw: []byte("1")}}
			if fd := onlyField(t, reflected); fd.Name() != "unknown_members" {
				t.Errorf("wrote %s, want unknown_members", fd.Name())
			}
		})
	}
}

// onlyField returns the only field of m that is set.
func onlyField(t *testing.T, m protoreflect.Message) protoreflect.FieldDescriptor {
	t.Helper()
	var found []protoreflect.FieldDescriptor
	m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		found = append(found, fd)
		return true
	})
	if len(found) != 1 {
		t.Fatalf("%d fields are set, want 1: %v", len(found), found)
	}
	return found[0]
}

// put sets a field by its offset.
func put(t *testing.T, f *field, m message) {
	t.Helper()
	number, yes := int32(-7), true
	switch f.shape {
	case shapeString:
		*pointer[string](m, f.offset) = "text"
	case shapeEnum:
		*pointer[int32](m, f.offset) = 1
	case shapeInt32:
		*pointer[int32](m, f.offset) = number
	case shapeOptionalInt:
		*pointer[*int32](m, f.offset) = &number
	case shapeBool:
		*pointer[bool](m, f.offset) = yes
	case shapeOptionalBool:
		*pointer[*bool](m, f.offset) = &yes
	case shapeBytes:
		*pointer[[]byte](m, f.offset) = []byte("bytes")
	case shapeStringList:
		*pointer[[]string](m, f.offset) = []string{"a", "b"}
	case shapeStringMap:
		*pointer[map[string]string](m, f.offset) = map[string]string{"key": "value"}
	case shapeRaw:
		*pointer[*hooksv1alpha1.RawExtension](m, f.offset) = &hooksv1alpha1.RawExtension{}
	case shapeJSON:
		*pointer[*hooksv1alpha1.JSON](m, f.offset) = &hooksv1alpha1.JSON{}
	case shapeMessage:
		*pointer[message](m, f.offset) = newMessage(f.message)
	case shapeList:
		var s slabs
		*pointer[[]message](m, f.offset) = []message{s.message(f.message), s.message(f.message), s.message(f.message)}
	default:
		t.Fatalf("%s has shape %d", f.name, f.shape)
	}
}

// get returns the value of a field by its offset; messages are represented by their addresses.
func get(f *field, m message) any {
	switch f.shape {
	case shapeString:
		return *pointer[string](m, f.offset)
	case shapeEnum, shapeInt32:
		return *pointer[int32](m, f.offset)
	case shapeOptionalInt:
		return **pointer[*int32](m, f.offset)
	case shapeBool:
		return *pointer[bool](m, f.offset)
	case shapeOptionalBool:
		return **pointer[*bool](m, f.offset)
	case shapeBytes:
		return *pointer[[]byte](m, f.offset)
	case shapeStringList:
		return *pointer[[]string](m, f.offset)
	case shapeStringMap:
		return *pointer[map[string]string](m, f.offset)
	case shapeList:
		var all []unsafe.Pointer
		for _, element := range *pointer[[]message](m, f.offset) {
			all = append(all, element.p)
		}
		return all
	default:
		return pointer[message](m, f.offset).p
	}
}

// reflectedValue returns what get returns, of a value from protoreflect.
func reflectedValue(f *field, v protoreflect.Value) any {
	address := func(m protoreflect.Message) unsafe.Pointer { return reflect.ValueOf(m.Interface()).UnsafePointer() }
	switch f.shape {
	case shapeEnum:
		return int32(v.Enum())
	case shapeString, shapeInt32, shapeOptionalInt, shapeBool, shapeOptionalBool, shapeBytes:
		return v.Interface()
	case shapeStringList:
		var all []string
		for i := range v.List().Len() {
			all = append(all, v.List().Get(i).String())
		}
		return all
	case shapeStringMap:
		all := map[string]string{}
		v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			all[key.String()] = value.String()
			return true
		})
		return all
	case shapeList:
		var all []unsafe.Pointer
		for i := range v.List().Len() {
			all = append(all, address(v.List().Get(i).Message()))
		}
		return all
	default:
		return address(v.Message())
	}
}
