// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComparisonKeepsItsPath checks the paths of losses that follow lists, maps and objects in which nothing or something
// was lost.
func TestComparisonKeepsItsPath(t *testing.T) {
	type inner struct {
		A string `json:"a"`
		B *bool  `json:"b"`
	}
	type outer struct {
		List   []inner           `json:"list"`
		Map    map[string]string `json:"map"`
		Object inner             `json:"object"`
		Last   int32             `json:"last"`
	}
	whole := func() outer {
		return outer{
			List: []inner{{A: "x", B: new(true)}, {A: "y"}}, Map: map[string]string{"k": "v"},
			Object: inner{A: "z", B: new(true)}, Last: 1,
		}
	}
	for name, tc := range map[string]struct {
		change func(*outer)
		want   []string
	}{
		"Same":        {func(*outer) {}, nil},
		"AfterAll":    {func(o *outer) { o.Last = 0 }, []string{"last"}},
		"Everywhere":  {func(o *outer) { *o = outer{} }, []string{"list", "map[*]", "object.a", "object.b", "last"}},
		"InElements":  {func(o *outer) { o.List[0].B, o.List[1].A, o.Last = nil, "", 2 }, []string{"list[*].b", "list[*].a", "last"}},
		"Shorter":     {func(o *outer) { o.List, o.Object.A = o.List[:1], "" }, []string{"list", "object.a"}},
		"InMap":       {func(o *outer) { o.Map["k"], o.Last = "w", 3 }, []string{"map[*]", "last"}},
		"False":       {func(o *outer) { o.Object.B = new(false) }, []string{"object.b"}},
		"MoreInBack":  {func(o *outer) { o.Map["l"] = "implied" }, nil},
		"OtherNumber": {func(o *outer) { o.Last = 2 }, []string{"last"}},
	} {
		t.Run(name, func(t *testing.T) {
			src, back := whole(), whole()
			tc.change(&back)
			var got []string
			c := comparison{lost: func(path []step) { got = append(got, pathOf(path)) }}
			c.compare(reflect.ValueOf(src), reflect.ValueOf(back))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("losses -want +got:\n%s", diff)
			}
			if len(c.path) != 0 {
				t.Errorf("the path ends as %v", c.path)
			}
		})
	}
}
