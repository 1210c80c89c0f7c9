// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// comparison compares an object with the result of converting it there and back, to find the losses. It compares Go
// values, not JSON, and does not look into lists and maps that the conversions share, so that it costs little.
type comparison struct {
	path []step
	lost func(path []step)
}

// compare compares two values of the type of s. Absent, zero and empty are equal. Members that only back has are no
// losses, because conversions fill in implied members, such as the namespace of references.
func (c *comparison) compare(s *schema, src, back reflect.Value) {
	switch s.shape {
	case shapeString:
		c.check(src.String() == "" || src.String() == back.String())
	case shapeBool:
		c.check(!src.Bool() || back.Bool())
	case shapeInt:
		c.check(src.Int() == 0 || src.Int() == back.Int())
	case shapeObject:
		for _, f := range s.fields {
			c.path = append(c.path, step{name: f.name, index: isMember})
			c.compare(f.schema, f.in(src), f.in(back))
			c.path = c.path[:len(c.path)-1]
		}
	case shapePointer:
		switch {
		case src.IsNil() || src.UnsafePointer() == back.UnsafePointer():
		case back.IsNil():
			c.compare(s.elem, src.Elem(), reflect.Zero(s.elem.typ))
		default:
			c.compare(s.elem, src.Elem(), back.Elem())
		}
	case shapeList:
		c.list(s, src, back)
	case shapeMap:
		c.mapping(s, src, back)
	case shapeRaw:
		raw := src.Field(0).Bytes()
		c.check(len(raw) == 0 || string(raw) == "null" || string(raw) == string(back.Field(0).Bytes()))
	default:
		c.check(src.IsZero() || equal(src, back))
	}
}

func (c *comparison) check(same bool) {
	if !same {
		c.lost(c.path)
	}
}

func (c *comparison) list(s *schema, src, back reflect.Value) {
	n := src.Len()
	if n != back.Len() {
		c.check(n == 0)
		return
	}
	if n == 0 || src.UnsafePointer() == back.UnsafePointer() {
		return
	}
	c.path = append(c.path, step{index: 0})
	var named map[string]reflect.Value
	if s.elem.typ == failureDomainType {
		named = byName(back)
	}
	for i := range n {
		element := back.Index(i)
		if named != nil {
			var ok bool
			if element, ok = named[src.Index(i).FieldByName("Name").String()]; !ok {
				element = reflect.Zero(s.elem.typ)
			}
		}
		c.compare(s.elem, src.Index(i), element)
	}
	c.path = c.path[:len(c.path)-1]
}

// failureDomainType is the type of the elements of a list that is a map in v1beta1, and so comes back in another order.
var failureDomainType = reflect.TypeFor[clusterv1.FailureDomain]()

// byName returns the elements of a list by their names.
func byName(list reflect.Value) map[string]reflect.Value {
	named := make(map[string]reflect.Value, list.Len())
	for i := range list.Len() {
		element := list.Index(i)
		if name := element.FieldByName("Name").String(); !named[name].IsValid() {
			named[name] = element
		}
	}
	return named
}

func (c *comparison) mapping(s *schema, src, back reflect.Value) {
	if src.Len() == 0 || src.UnsafePointer() == back.UnsafePointer() {
		return
	}
	c.path = append(c.path, step{index: isKey})
	for entries := src.MapRange(); entries.Next(); {
		if there := back.MapIndex(entries.Key()); there.IsValid() {
			c.compare(s.elem, entries.Value(), there)
		} else {
			c.lost(c.path)
		}
	}
	c.path = c.path[:len(c.path)-1]
}

// equal reports whether two values of a type that implements json.Unmarshaler are equal.
func equal(a, b reflect.Value) bool {
	if t, ok := reflect.TypeAssert[metav1.Time](a); ok {
		o := b.Interface().(metav1.Time)
		return t.Equal(&o)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// pathOf returns the path with [*] for indices and keys, so that there are no more paths than types have members.
func pathOf(path []step) string {
	var b strings.Builder
	for _, s := range path {
		if s.index != isMember {
			b.WriteString("[*]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}
