// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// A member that no type knows is either kept where it is or declared lost, at every place that a version has; and
// what is kept comes back.
func TestUnknownMembersEverywhere(t *testing.T) {
	for _, k := range kinds() {
		for _, src := range []*side{k.old, k.hub} {
			_, dst := k.sides(src.name)
			var kept, lost []string
			for _, place := range places(src.typ, nil) {
				path := k.path + "." + pathOf(append(slices.Clone(place), step{name: "zz", index: isMember}))
				there, losses := converted(t, k, holding(k, src, place), dst.name)
				if at(parsed(t, there), place) == nil {
					lost = append(lost, path)
					if !slices.Contains(losses, path) {
						t.Errorf("%s is gone, and not among the losses %v: %s", path, losses, there)
					}
					continue
				}
				kept = append(kept, path)
				if slices.Contains(losses, path) {
					t.Errorf("%s is declared lost, and there: %s", path, there)
				}
				back, _ := converted(t, k, string(there), src.name)
				if got, _ := json.Marshal(at(parsed(t, back), place)); string(got) != `{"deep":[1.50]}` {
					t.Errorf("%s came back as %s", path, got)
				}
			}
			if len(kept) < 10 || len(lost) < 1 {
				t.Errorf("%s of %s: %d places keep unknown members, %d lose them: %v", k.name, src.name, len(kept),
					len(lost), lost)
			}
			t.Logf("%s of %s: %d places keep unknown members, %d do not: %v", k.name, src.name, len(kept),
				len(lost), lost)
		}
	}
}

// holding returns an object that has nothing but an unknown member in the place.
func holding(k *kind, src *side, place []step) string {
	value := `{"zz":{"deep":[1.50]}}`
	for _, s := range slices.Backward(place[1:]) {
		if s.index >= 0 {
			value = "[" + value + "]"
		} else {
			value = fmt.Sprintf(`{%q:%s}`, s.name, value)
		}
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":"cluster.x-k8s.io/%s",%q:%s}`, k.name, src.name, place[0].name, value)
}

// converted returns an object in another version, and what that lost.
func converted(t *testing.T, k *kind, object, to string) ([]byte, []string) {
	t.Helper()
	req, get := requestWith([]byte(object), map[string]uint8{"Machine": 1, "MachineSet": 2, "MachinePool": 3}[k.name])
	c, err := sampleObjects().Request(req, to)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return get(c.Message), c.Losses
}

// places returns the paths of all objects in a type but the metadata: with one element in lists, and a key "a" in maps.
func places(t reflect.Type, path []step) [][]step {
	t = pointedTo(t)
	if isLeaf(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		return places(t.Elem(), append(slices.Clone(path), step{index: 0}))
	case reflect.Map:
		return places(t.Elem(), append(slices.Clone(path), step{name: "a", index: isKey}))
	}
	var all [][]step
	if len(path) > 0 {
		all = append(all, path)
	}
	for _, f := range fieldsOf(t).all {
		if len(path) > 0 || !isHeader(f.name) {
			all = append(all, places(f.typ, append(slices.Clone(path), step{name: f.name, index: isMember}))...)
		}
	}
	return all
}

// at returns the unknown member of the object that place leads to, nil if there is none.
func at(v any, place []step) any {
	for _, s := range place {
		switch o := v.(type) {
		case map[string]any:
			v = o[s.name]
		case []any:
			if s.index < 0 || s.index >= len(o) {
				return nil
			}
			v = o[s.index]
		default:
			return nil
		}
	}
	o, _ := v.(map[string]any)
	return o["zz"]
}
