// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"
	"time"

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
		for _, f := range src.schema.fields {
			if !isHeader(f.name) {
				p.probe(f.schema, []*field{f})
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

// probe tries all members below path, which has the type of s.
func (p *prober) probe(s *schema, path []*field) {
	switch s.shape {
	case shapePointer, shapeList, shapeMap:
		p.probe(s.elem, path)
	case shapeObject:
		for _, f := range s.fields {
			p.probe(f.schema, append(slices.Clone(path), f))
		}
	default:
		for _, value := range probes(s) {
			p.try(path, value)
		}
	}
}

// try converts an object with probe at path, and one element in every list on the way, and records the losses.
func (p *prober) try(path []*field, probe reflect.Value) {
	object := newValue(p.src.schema)
	set(p.src.schema, object, path, probe)
	unknown := func(group, _ string) (string, error) { return group + "/", nil }
	converted, err := p.src.convert(object.pointer(p.src.schema), nil, unknown)
	if err != nil {
		return // no object of this kind can have the value
	}
	back, err := p.dst.convert(converted, nil, unknown)
	if err != nil {
		return
	}
	c := comparison{lost: func(path []step) { p.lost.add(p.kind.path + "." + pathOf(path)) }}
	c.compareObject(p.src.schema, object, valueOf(back))
}

// set sets what path leads to in v, which has the type of s.
func set(s *schema, v value, path []*field, to reflect.Value) {
	switch s.shape {
	case shapePointer:
		v.setTarget(newValue(s.elem))
		set(s.elem, v.target(), path, to)
	case shapeList:
		v.reflected(s).Set(reflect.MakeSlice(s.typ, 1, 1))
		set(s.elem, v.element(s.elem, 0), path, to)
	case shapeMap:
		elem := newValue(s.elem)
		set(s.elem, elem, path, to)
		v.reflected(s).Set(reflect.MakeMap(s.typ))
		v.reflected(s).SetMapIndex(reflect.ValueOf("a").Convert(s.typ.Key()), elem.reflected(s.elem))
	case shapeObject:
		set(path[0].schema, path[0].in(v), path[1:], to)
	default:
		v.reflected(s).Set(to.Convert(s.typ))
	}
}

// probes returns values that a conversion may lose.
func probes(s *schema) []reflect.Value {
	switch s.shape {
	case shapeString:
		// v1beta1 does not know the phase of Machines that are updated in place.
		return []reflect.Value{reflect.ValueOf("a"), reflect.ValueOf("a.io/v1"), reflect.ValueOf("Updating")}
	case shapeBool:
		return []reflect.Value{reflect.ValueOf(true)}
	case shapeInt:
		return []reflect.Value{reflect.ValueOf(1)}
	case shapeRaw:
		v := reflect.New(s.typ).Elem()
		v.Field(0).SetBytes([]byte(`{"a":1}`))
		return []reflect.Value{v}
	}
	switch s.typ {
	case reflect.TypeFor[metav1.Time]():
		return []reflect.Value{reflect.ValueOf(metav1.Unix(1, 0))}
	case reflect.TypeFor[metav1.Duration]():
		return []reflect.Value{reflect.ValueOf(metav1.Duration{Duration: time.Second + time.Millisecond})}
	case reflect.TypeFor[intstr.IntOrString]():
		return []reflect.Value{reflect.ValueOf(intstr.FromInt32(1)), reflect.ValueOf(intstr.FromString("10%"))}
	}
	panic("convert: no probe for " + s.typ.String()) // a test covers all types
}
