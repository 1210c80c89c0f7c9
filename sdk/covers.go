// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Paths are places in the objects of CanUpdateMachine and CanUpdateMachineSet, as JSON pointers (RFC 6901) by the name
// of the object: "machine": {"/spec/version"}. The names are those of the protos: machine, infrastructure_machine,
// bootstrap_config; machine_set, infrastructure_machine_template, bootstrap_config_template.
type Paths map[string][]string

// Covers returns the response of CanUpdateMachine or CanUpdateMachineSet which says that the places can be updated in
// place: for each object, a merge patch (RFC 7386) of these places where the desired object differs from the current
// one. A name that the request does not have, and a place in a list, are errors.
func Covers[Resp proto.Message](in proto.Message, paths Paths) (Resp, error) {
	var none Resp
	out := none.ProtoReflect().New()
	current, desired := memberOf(in.ProtoReflect(), "current"), memberOf(in.ProtoReflect(), "desired")
	if current == nil || desired == nil || current.Descriptor() != desired.Descriptor() {
		return none, fmt.Errorf("%s has no objects named current and desired", in.ProtoReflect().Descriptor().Name())
	}
	fields := current.Descriptor().Fields()
	known := map[string]bool{}
	for i := range fields.Len() {
		name := fields.Get(i).Name()
		patchField := out.Descriptor().Fields().ByName(name + "_patch")
		if patchField == nil || patchField.Message() == nil {
			continue
		}
		known[string(name)] = true
		if len(paths[string(name)]) == 0 {
			continue
		}
		patch, err := covered(fields.Get(i), current, desired, paths[string(name)])
		if err != nil {
			return none, err
		}
		if patch == nil {
			continue
		}
		m := out.Mutable(patchField).Message()
		m.Set(m.Descriptor().Fields().ByName("patch_type"), protoreflect.ValueOfEnum(jsonMergePatch))
		m.Set(m.Descriptor().Fields().ByName("patch"), protoreflect.ValueOfBytes(patch))
	}
	for name := range paths {
		if !known[name] {
			return none, fmt.Errorf("%s and %s have no object %q",
				in.ProtoReflect().Descriptor().Name(), out.Descriptor().Name(), name)
		}
	}
	if s := statusField(out.Descriptor()); s != nil {
		out.Set(s, protoreflect.ValueOfEnum(success))
	}
	return out.Interface().(Resp), nil //nolint:forcetypeassert // it was made from a Resp
}

// memberOf returns a message in another, or nil.
func memberOf(m protoreflect.Message, name protoreflect.Name) protoreflect.Message {
	f := m.Descriptor().Fields().ByName(name)
	if f == nil || f.Message() == nil || f.IsList() || f.IsMap() {
		return nil
	}
	return m.Get(f).Message()
}

// covered returns the merge patch of one object, or nil if nothing of it differs.
func covered(f protoreflect.FieldDescriptor, current, desired protoreflect.Message, pointers []string) ([]byte, error) {
	if !current.Has(f) && !desired.Has(f) {
		return nil, nil // as a Machine without a bootstrap config
	}
	var objects [2]map[string]any
	for i, m := range []protoreflect.Message{current, desired} {
		raw, err := rawAt(m, f.JSONName())
		if err == nil {
			err = decodeObject([]string{"current.", "desired."}[i]+f.JSONName(), raw, &objects[i])
		}
		if err != nil {
			return nil, err
		}
	}
	places, err := parsePointers(pointers)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	for _, at := range places {
		a, listA := lookup(objects[0], at)
		b, listB := lookup(objects[1], at)
		if in := max(listA, listB); in > 0 {
			return nil, Failf("covers: %s: %q is a list: cover the whole list, not %q", f.Name(),
				pointerTo(at[:in]), pointerTo(at))
		}
		if change, differs := mergePatch(a, b); differs {
			if err := set(patch, at, change); err != nil {
				return nil, fmt.Errorf("covers: %s: %w", f.Name(), err)
			}
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return marshal(patch)
}

// parsePointers returns the places that JSON pointers name, without those in another one of them.
func parsePointers(pointers []string) ([][]string, error) {
	var places [][]string
	for _, pointer := range slices.Sorted(slices.Values(pointers)) { // a place comes before those in it
		at, err := parsePointer(pointer)
		if err != nil {
			return nil, err
		}
		isIn := func(outer []string) bool { return len(outer) <= len(at) && slices.Equal(outer, at[:len(outer)]) }
		if !slices.ContainsFunc(places, isIn) {
			places = append(places, at)
		}
	}
	return places, nil
}

// lookup returns the value at a place, nil if there is none. If the place is in a list, inList is the number of names
// that lead to the list.
func lookup(node any, at []string) (value any, inList int) {
	for i, name := range at {
		switch n := node.(type) {
		case map[string]any:
			node = n[name]
		case []any:
			return nil, i
		default:
			return nil, 0
		}
	}
	return node, 0
}

// mergePatch returns the merge patch that makes b of a, and whether they differ. Null is as absent.
func mergePatch(a, b any) (any, bool) {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if !okX || !okY {
		return b, !equal(a, b)
	}
	patch := map[string]any{}
	for name, value := range y {
		if change, differs := mergePatch(x[name], value); differs {
			patch[name] = change
		}
	}
	for name, value := range x {
		if _, ok := y[name]; !ok && value != nil {
			patch[name] = nil
		}
	}
	return patch, len(patch) > 0
}
