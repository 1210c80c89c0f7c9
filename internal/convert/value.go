// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"fmt"
	"reflect"
	"unsafe"
)

// value points to a Go value of the type of a schema. Members are reached by their offsets, because with package
// reflect, decoding takes half as long again, and comparing twice as long.
//
// This file has all that is unsafe about it. What keeps it safe is that each offset comes from the reflect.Type of the
// struct, and that a value is only read as what the shape of its schema says, which comes from the same type.
type value struct{ p unsafe.Pointer }

// newValue returns a new zero value.
func newValue(s *schema) value { return value{reflect.New(s.typ).UnsafePointer()} }

// valueOf returns the value that v, a pointer that is not nil, points to.
func valueOf(v any) value { return value{reflect.ValueOf(v).UnsafePointer()} }

// in returns the member f of v, an object.
func (f *field) in(v value) value { return value{unsafe.Add(v.p, f.offset)} }

// read returns v as a T, which must have the memory layout of its type.
func read[T any](v value) *T { return (*T)(v.p) }

func (v value) string() *string { return read[string](v) }
func (v value) bool() *bool     { return read[bool](v) }

// int returns the number in v, of a type whose shape is shapeInt.
func (v value) int(s *schema) int64 {
	if s.size == 4 {
		return int64(*read[int32](v))
	}
	return *read[int64](v)
}

func (v value) setInt(s *schema, n int64) {
	if s.size == 4 {
		*read[int32](v) = int32(n)
		return
	}
	*read[int64](v) = n
}

// address returns the address of what v, a pointer or a map, refers to, or nil. Two of one address are the same.
func (v value) address() unsafe.Pointer { return *read[unsafe.Pointer](v) }

// target returns what v, a pointer that is not nil, points to.
func (v value) target() value { return value{v.address()} }

// setTarget makes v, a pointer, point to to.
func (v value) setTarget(to value) { *read[unsafe.Pointer](v) = to.p }

// list is the memory layout of a slice.
type list struct {
	first    unsafe.Pointer
	len, cap int
}

// element returns an element of v, whose type is a slice of the type of s.
func (v value) element(s *schema, i int) value {
	l := read[list](v)
	if i < 0 || i >= l.len {
		panic(fmt.Sprintf("convert: element %d of %d", i, l.len))
	}
	return value{unsafe.Add(l.first, uintptr(i)*s.size)}
}

// reflected returns v for package reflect; it can be set.
func (v value) reflected(s *schema) reflect.Value { return reflect.NewAt(s.typ, v.p).Elem() }

// pointer returns a pointer to v for what implements an interface.
func (v value) pointer(s *schema) any { return reflect.NewAt(s.typ, v.p).Interface() }

// memory returns the bytes of v.
func (v value) memory(s *schema) []byte {
	return unsafe.Slice((*byte)(v.p), s.size) //nolint:gosec // it has the size of its type
}

// identical reports whether a and b consist of the same bytes, and so of the same values.
func identical(s *schema, a, b value) bool { return bytes.Equal(a.memory(s), b.memory(s)) }

// zeros is larger than most values.
var zeros [2 << 10]byte

// isBlank reports whether all bytes of v are zero, as they are in a zero value, unless it is large.
func (v value) isBlank(s *schema) bool {
	return s.size <= uintptr(len(zeros)) && bytes.Equal(v.memory(s), zeros[:s.size])
}

// shared returns b as a string without copying it. The caller must neither change b nor keep the string.
func shared(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // the text outlives the values that refer to it
}
