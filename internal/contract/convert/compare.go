// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// comparison compares an object with the result of converting it there and back, to find the losses. It compares Go
// values, not JSON.
type comparison struct {
	path []step
	lost func(path []step)
}

// compareObject compares everything that is converted of two objects, pointers to the same type.
func (c *comparison) compareObject(src, back any) {
	from, to := reflect.ValueOf(src).Elem(), reflect.ValueOf(back).Elem()
	for _, f := range fieldsOf(from.Type()).all {
		if !isHeader(f.name) {
			c.below(step{name: f.name, index: isMember}, f.in(from), f.in(to))
		}
	}
}

// below compares two values that s leads to.
func (c *comparison) below(s step, src, back reflect.Value) {
	c.path = append(c.path, s)
	c.compare(src, back)
	c.path = c.path[:len(c.path)-1]
}

// compare compares two values of one type. Absent, zero and empty are equal. Members that only back has are no
// losses, because conversions fill in implied members, such as the namespace of references.
func (c *comparison) compare(src, back reflect.Value) {
	if src.IsZero() {
		return
	}
	switch t := src.Type(); {
	case isLeaf(t):
		if !equal(src, back) {
			c.lost(c.path)
		}
	case t.Kind() == reflect.Pointer:
		if back.IsNil() {
			back = reflect.New(t.Elem())
		}
		c.compare(src.Elem(), back.Elem())
	case t.Kind() == reflect.Slice:
		c.list(src, back)
	case t.Kind() == reflect.Map:
		for entries := src.MapRange(); entries.Next(); {
			if entry := back.MapIndex(entries.Key()); entry.IsValid() {
				c.below(step{index: isKey}, entries.Value(), entry)
			} else {
				c.lost(append(c.path, step{index: isKey}))
			}
		}
	default:
		for _, f := range fieldsOf(t).all {
			c.below(step{name: f.name, index: isMember}, f.in(src), f.in(back))
		}
	}
}

func (c *comparison) list(src, back reflect.Value) {
	if src.Len() != back.Len() {
		if src.Len() > 0 {
			c.lost(c.path)
		}
		return
	}
	if src.UnsafePointer() == back.UnsafePointer() {
		return // the conversions share it
	}
	if domains, ok := reflect.TypeAssert[[]clusterv1.FailureDomain](back); ok {
		back = inOrder(src.Interface().([]clusterv1.FailureDomain), domains)
	}
	for i := range src.Len() {
		c.below(step{index: i}, src.Index(i), back.Index(i))
	}
}

// inOrder returns the failure domains of back in the order of src, by their names, because they are a map in v1beta1.
func inOrder(src, back []clusterv1.FailureDomain) reflect.Value {
	byName := make(map[string]clusterv1.FailureDomain, len(back))
	for _, domain := range back {
		byName[domain.Name] = domain
	}
	ordered := make([]clusterv1.FailureDomain, 0, len(src))
	for _, domain := range src {
		ordered = append(ordered, byName[domain.Name])
	}
	return reflect.ValueOf(ordered)
}

// equal reports whether two leaves are equal. The null that any JSON may be is absent.
func equal(a, b reflect.Value) bool {
	switch a := a.Interface().(type) {
	case apiextensionsv1.JSON:
		return len(a.Raw) == 0 || string(a.Raw) == "null" || bytes.Equal(a.Raw, b.Interface().(apiextensionsv1.JSON).Raw)
	case metav1.Time:
		return a.Equal(new(b.Interface().(metav1.Time)))
	}
	return a.Equal(b)
}
