// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Lossy returns the paths that a conversion of a kind ("Cluster", "Machine", "MachineSet" or "MachinePool") from one
// version to another can lose, sorted, or nil if it loses nothing or does not exist. To find them, Lossy converts
// objects that have one member each. The result includes paths that are lost only together with certain values of
// others, but no members that the types do not know. Lossy takes some milliseconds; callers should keep the result.
func Lossy(kind, from, to string) []string {
	for _, k := range kinds() {
		src, dst := k.sides(from)
		if k.name != kind || src == nil || dst.name != to {
			continue
		}
		var lost lossSet
		p := prober{kind: k, src: src, dst: dst, lost: &lost}
		for _, f := range fieldsOf(src.typ).all {
			if !isHeader(f.name) {
				p.probe(f.typ, []*field{f})
			}
		}
		return lost.sorted()
	}
	return nil
}

// prober converts one object for every member of a type.
type prober struct {
	kind     *kind
	src, dst *side
	lost     *lossSet
}

// probe tries all members below path, which leads to a value of type t.
func (p *prober) probe(t reflect.Type, path []*field) {
	switch {
	case isLeaf(t):
		for _, value := range probes(t) {
			p.try(path, value)
		}
	case t.Kind() == reflect.Struct:
		for _, f := range fieldsOf(t).all {
			p.probe(f.typ, append(slices.Clone(path), f))
		}
	default:
		p.probe(t.Elem(), path)
	}
}

// try converts an object with probe at path, and one element in every list on the way, and records the losses.
func (p *prober) try(path []*field, probe reflect.Value) {
	object := reflect.New(p.src.typ)
	set(object.Elem(), path, probe)
	unknown := func(group, _ string) (string, error) { return group + "/", nil }
	converted, err := p.src.convert(object.Interface(), nil, unknown)
	if err != nil {
		return // no object of this kind can have the value
	}
	back, err := p.dst.convert(converted, nil, unknown)
	if err != nil {
		return
	}
	c := comparison{lost: func(path []step) { p.lost.add(p.kind.path + "." + pathOf(path)) }}
	c.compareObject(object.Interface(), back)
}

// set sets what path leads to in v.
func set(v reflect.Value, path []*field, to reflect.Value) {
	switch t := v.Type(); {
	case isLeaf(t):
		v.Set(to.Convert(t))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		set(v.Elem(), path, to)
	case t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		set(v.Index(0), path, to)
	case t.Kind() == reflect.Map:
		element := reflect.New(t.Elem()).Elem()
		set(element, path, to)
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("a").Convert(t.Key()), element)
	default:
		set(path[0].in(v), path[1:], to)
	}
}

// probes returns values of a type that a conversion may lose.
func probes(t reflect.Type) []reflect.Value {
	switch t.Kind() {
	case reflect.String:
		// v1beta1 does not know the phase of Machines that are updated in place.
		return []reflect.Value{reflect.ValueOf("a"), reflect.ValueOf("a.io/v1"), reflect.ValueOf("Updating")}
	case reflect.Bool:
		return []reflect.Value{reflect.ValueOf(true)}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return []reflect.Value{reflect.ValueOf(1)}
	}
	switch t {
	case rawType:
		return []reflect.Value{reflect.ValueOf(apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)})}
	case reflect.TypeFor[metav1.Time]():
		return []reflect.Value{reflect.ValueOf(metav1.Unix(1, 0))}
	case reflect.TypeFor[metav1.Duration]():
		return []reflect.Value{reflect.ValueOf(metav1.Duration{Duration: time.Second + time.Millisecond})}
	case reflect.TypeFor[intstr.IntOrString]():
		return []reflect.Value{reflect.ValueOf(intstr.FromInt32(1)), reflect.ValueOf(intstr.FromString("10%"))}
	}
	panic("convert: no probe for " + t.String()) // a test covers all types
}
