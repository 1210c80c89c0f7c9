// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"sync"
	"unsafe"
)

// arena has the memory of one decoded object: of the elements of its lists, and of what its pointers point to. It is
// used again when the object has been converted, which saves half of the allocations of a conversion.
type arena struct {
	slabs []slab // by schema.slab
	owner *sync.Pool
}

// slab has the values of one schema.
type slab struct {
	memory reflect.Value // a slice that can be set; the values from used on are zero
	used   int
}

// maxPooled is the number of bytes of the values of one schema that are kept for the next object.
const maxPooled = 16 << 10

// newArenas returns a pool of arenas for objects of the type of s.
func newArenas(s *schema) *sync.Pool {
	p := &sync.Pool{}
	p.New = func() any { return &arena{slabs: make([]slab, s.slabs), owner: p} }
	return p
}

// one returns a zero value.
func (a *arena) one(s *schema) value {
	var l list
	a.extend(s, &l)
	return value{l.first}
}

// extend adds a zero element to l, a list of values of s, which must be empty or the last one that was extended. The
// list has no capacity beyond its length, because what comes after it in memory is another's.
func (a *arena) extend(s *schema, l *list) {
	b := &a.slabs[s.slab]
	if b.used == b.capacity() {
		slices := reflect.SliceOf(s.typ)
		grown := reflect.New(slices).Elem()
		grown.Set(reflect.MakeSlice(slices, max(2*b.used, 4), max(2*b.used, 4)))
		if l.len > 0 {
			reflect.Copy(grown, b.memory.Slice(b.used-l.len, b.used))
			l.first = grown.UnsafePointer()
		}
		b.memory, b.used = grown, l.len
	}
	if l.len == 0 {
		l.first = unsafe.Add(b.memory.UnsafePointer(), uintptr(b.used)*s.size)
	}
	b.used++
	l.len++
	l.cap = l.len
}

func (b *slab) capacity() int {
	if !b.memory.IsValid() {
		return 0
	}
	return b.memory.Len()
}

// release gives the memory back. Nothing may refer to the object any longer.
func (a *arena) release() {
	for i := range a.slabs {
		b := &a.slabs[i]
		if b.used == 0 {
			continue
		}
		if uintptr(b.capacity())*b.memory.Type().Elem().Size() > maxPooled {
			b.memory = reflect.Value{}
		} else {
			b.memory.SetLen(b.used)
			b.memory.Clear()
			b.memory.SetLen(b.memory.Cap())
		}
		b.used = 0
	}
	a.owner.Put(a)
}
