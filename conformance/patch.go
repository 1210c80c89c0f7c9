// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	ours "github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// The types of patches.
const (
	jsonPatchType      = "JSONPatch"
	jsonMergePatchType = "JSONMergePatch"
)

// known reports whether the contract has the type of the patch.
func (p *patch) known() bool {
	return p.PatchType == jsonPatchType || p.PatchType == jsonMergePatchType
}

// operations decodes a JSON patch.
func (p *patch) operations() (jsonpatch.Patch, error) {
	if len(bytes.TrimSpace(p.Patch)) == 0 {
		return nil, ours.ErrNoText
	}
	return jsonpatch.DecodePatch(p.Patch)
}

// decode decodes the patch by its type.
func (p *patch) decode() error {
	if p.PatchType == jsonPatchType {
		_, err := p.operations()
		return err
	}
	if len(p.Patch) == 0 {
		return nil
	}
	v, err := parse(p.Patch)
	if err != nil {
		return err
	}
	if _, ok := v.(map[string]any); !ok {
		return fmt.Errorf("a merge patch is a JSON object, not %s", kindOf(v))
	}
	return nil
}

// apply returns the object with the patch applied, as Cluster API applies it: with the same library.
func (p *patch) apply(object []byte) (_ []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // the library may panic on unexpected input
			err = fmt.Errorf("%v", r)
		}
	}()
	var patched []byte
	switch {
	case p.PatchType == jsonPatchType:
		operations, err := p.operations()
		if err != nil {
			return nil, err
		}
		if len(operations) == 0 {
			return object, nil
		}
		if patched, err = operations.Apply(bytes.Clone(object)); err != nil {
			return nil, err
		}
	case len(p.Patch) == 0:
		return object, nil
	default:
		if patched, err = jsonpatch.MergePatch(bytes.Clone(object), p.Patch); err != nil {
			return nil, err
		}
	}
	v, err := parse(patched)
	if err != nil {
		return nil, err
	}
	if o, ok := v.(map[string]any); !ok || o["kind"] == nil || o["apiVersion"] == nil {
		return nil, errors.New("the result is not a Kubernetes object: it has no apiVersion or no kind")
	}
	return patched, nil
}

// location is the path of a value in an object.
type location []string

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// String returns p as a JSON pointer.
func (p location) String() string {
	names := slices.Clone(p)
	for i := range names {
		names[i] = escapes.Replace(names[i])
	}
	return "/" + strings.Join(names, "/")
}

// within reports whether p is q or below it.
func (p location) within(q location) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// changes returns the paths of the values that differ between two objects, in order.
func changes(before, after []byte) ([]location, error) {
	a, err := parse(before)
	if err != nil {
		return nil, err
	}
	b, err := parse(after)
	if err != nil {
		return nil, err
	}
	var found []location
	compare(nil, a, b, &found)
	return found, nil
}

// compare adds to found the locations at which b differs from a. An object that only one of them has differs in each of
// its members.
func compare(at location, a, b any, found *[]location) {
	x, inA := a.(map[string]any)
	y, inB := b.(map[string]any)
	if inA && inB {
		names := maps.Clone(x)
		maps.Copy(names, y)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			below := append(slices.Clip(at), name)
			p, hasP := x[name]
			q, hasQ := y[name]
			switch {
			case hasP && hasQ:
			case isFilled(p):
				q = map[string]any{}
			case isFilled(q):
				p = map[string]any{}
			default:
				*found = append(*found, below)
				continue
			}
			compare(below, p, q, found)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*found = append(*found, at)
	}
}

// isFilled reports whether v is an object with members.
func isFilled(v any) bool {
	members, ok := v.(map[string]any)
	return ok && len(members) > 0
}

// isEmptyParent reports whether a location is above one of the parts that may be patched, and has nothing before and
// after the patch. An operation of RFC 6902 needs an empty parent before it can add a part, perhaps in another patch.
func isEmptyParent(at location, before, after any, parts ...location) bool {
	for _, v := range []any{lookup(before, at), lookup(after, at)} {
		if members, isObject := v.(map[string]any); v != nil && (!isObject || len(members) > 0) {
			return false
		}
	}
	return slices.ContainsFunc(parts, func(part location) bool { return part.within(at) })
}

// lookup returns the value at a location, or nil if the location does not exist.
func lookup(v any, at location) any {
	for _, name := range at {
		members, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = members[name]
	}
	return v
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
