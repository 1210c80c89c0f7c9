// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
func (c *comparison) compare(s *schema, src, back value) {
	switch s.shape {
	case shapeString:
		c.check(*src.string() == "" || *src.string() == *back.string())
	case shapeBool:
		c.check(!*src.bool() || *back.bool())
	case shapeInt:
		c.check(src.int(s) == 0 || src.int(s) == back.int(s))
	case shapeObject:
		if identical(s, src, back) {
			return
		}
		for _, f := range s.fields {
			c.path = append(c.path, step{name: f.name, index: isMember})
			c.compare(f.schema, f.in(src), f.in(back))
			c.path = c.path[:len(c.path)-1]
		}
	case shapePointer:
		switch {
		case src.address() == nil || src.address() == back.address():
		case back.address() == nil:
			c.compare(s.elem, src.target(), newValue(s.elem))
		default:
			c.compare(s.elem, src.target(), back.target())
		}
	case shapeList:
		c.list(s, src, back)
	case shapeMap:
		c.mapping(s, src, back)
	case shapeRaw:
		raw := read[apiextensionsv1.JSON](src).Raw
		c.check(len(raw) == 0 || string(raw) == "null" || string(raw) == string(read[apiextensionsv1.JSON](back).Raw))
	default:
		c.check(identical(s, src, back) || src.reflected(s).IsZero() || equal(src.reflected(s), back.reflected(s)))
	}
}

func (c *comparison) check(same bool) {
	if !same {
		c.lost(c.path)
	}
}

func (c *comparison) list(s *schema, src, back value) {
	from, to := read[list](src), read[list](back)
	if from.len != to.len {
		c.check(from.len == 0)
		return
	}
	if from.len == 0 || from.first == to.first {
		return
	}
	c.path = append(c.path, step{index: 0})
	var named map[string]value
	if s.elem.typ == failureDomainType {
		named = byName(s.elem, back)
	}
	for i := range from.len {
		is, was := src.element(s.elem, i), back.element(s.elem, i)
		if named != nil {
			var ok bool
			if was, ok = named[read[clusterv1.FailureDomain](is).Name]; !ok {
				was = newValue(s.elem)
			}
		}
		c.compare(s.elem, is, was)
	}
	c.path = c.path[:len(c.path)-1]
}

// failureDomainType is the type of the elements of a list that is a map in v1beta1, and so comes back in another order.
var failureDomainType = reflect.TypeFor[clusterv1.FailureDomain]()

// byName returns the elements of a list of failure domains by their names.
func byName(s *schema, domains value) map[string]value {
	n := read[list](domains).len
	named := make(map[string]value, n)
	for i := range n {
		element := domains.element(s, i)
		name := read[clusterv1.FailureDomain](element).Name
		if _, ok := named[name]; !ok {
			named[name] = element
		}
	}
	return named
}

func (c *comparison) mapping(s *schema, src, back value) {
	if src.address() == nil || src.address() == back.address() {
		return
	}
	if s.typ == textsType && maps.Equal(*read[map[string]string](src), *read[map[string]string](back)) {
		return
	}
	c.path = append(c.path, step{index: isKey})
	there := back.reflected(s)
	for entries := src.reflected(s).MapRange(); entries.Next(); {
		if entry := there.MapIndex(entries.Key()); entry.IsValid() {
			c.compare(s.elem, copied(s.elem, entries.Value()), copied(s.elem, entry))
		} else {
			c.lost(c.path)
		}
	}
	c.path = c.path[:len(c.path)-1]
}

// copied returns a copy of v, an entry of a map, which has no address.
func copied(s *schema, v reflect.Value) value {
	to := newValue(s)
	to.reflected(s).Set(v)
	return to
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
