// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"testing"
	"unsafe"
)

// within reports whether part is a piece of whole: the same memory, not the same bytes.
func within(part, whole []byte) bool {
	offset := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	return len(part) > 0 && offset < uintptr(len(whole))
}

func TestLookup(t *testing.T) {
	const object = ` { "a" : 1 , "metadata":{"labels":{"namespace":"no"},"name\u0073pace" : "ns" ,"x":[{"namespace":"no"}]}, "text":"t", "A":2, "A":3, "e":{}, "\\u0062":3, "last":[1, 2]} `
	const twins = `{"metadata":{"name":1,"Name":2},"spec":{},"SPEC":{},"twice":{"a":1},"twice":{},"x":{"\u212aind":1,"ſ":2}}`
	cases := map[string]struct {
		raw  string
		path []string
		want string
		err  string
	}{
		"Whole":          {` [1] `, nil, `[1]`, ""},
		"Nested":         {object, []string{"metadata", "labels", "namespace"}, `"no"`, ""},
		"EscapedName":    {object, []string{"metadata", "namespace"}, `"ns"`, ""},
		"BackslashName":  {object, []string{`\u0062`}, `3`, ""},
		"NotUnescaped":   {object, []string{`b`}, ``, ""},
		"Last":           {object, []string{"last"}, `[1, 2]`, ""},
		"Absent":         {object, []string{"metadata", "name"}, ``, ""},
		"InEmpty":        {object, []string{"e", "name"}, ``, ""},
		"BelowText":      {object, []string{"text", "name"}, ``, ""},
		"BelowList":      {object, []string{"metadata", "x", "namespace"}, ``, ""},
		"Nothing":        {``, []string{"a"}, ``, ""},
		"NothingAtAll":   {``, nil, ``, ""},
		"GarbageAfter":   {`{"a":{"b":1},garbage`, []string{"a", "b"}, ``, ""},
		"GarbageBefore":  {`{garbage,"a":1}`, []string{"a"}, ``, ""},
		"GarbageInValue": {`{"b":[}],"a":1}`, []string{"a"}, ``, ""},
		"Truncated":      {`{"a":{"b"`, []string{"a", "b"}, ``, ""},
		"EndsInName":     {`{"a`, []string{"a"}, ``, ""},
		"OtherCase":      {object, []string{"a"}, ``, `A: differs from "a" only in case`},
		"OnlyOtherCase":  {object, []string{"metadata", "Namespace"}, ``, `metadata.namespace: differs from "Namespace" only in case`},
		"TwinBelow":      {twins, []string{"metadata", "name"}, ``, `metadata.Name: differs from "name" only in case`},
		"TwinAbove":      {twins, []string{"spec", "a"}, ``, `SPEC: differs from "spec" only in case`},
		"TwinElsewhere":  {twins, []string{"metadata"}, `{"name":1,"Name":2}`, ""},
		"Twice":          {twins, []string{"twice", "a"}, ``, `twice: occurs twice in one object`},
		"KelvinSign":     {twins, []string{"x", "kind"}, ``, "x.\u212aind: differs from \"kind\" only in case"},
		"LongS":          {twins, []string{"x", "s"}, ``, `x.ſ: differs from "s" only in case`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := []byte(tc.raw)
			got, err := Lookup(raw, tc.path...)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if string(got) != tc.want || text != tc.err {
				t.Errorf("Lookup(%s, %v) = %s, %v, want %s, %s", tc.raw, tc.path, got, err, tc.want, tc.err)
			}
			if got != nil && !within(got, raw) {
				t.Error("the value is a copy")
			}
		})
	}
}

func TestString(t *testing.T) {
	cases := map[string]struct {
		want string
		ok   bool
	}{
		`"text"`:         {"text", true},
		`""`:             {"", true},
		`"a\n\u00e9\"é"`: {"a\né\"é", true},
		`"\ud83d\ude00"`: {"😀", true},
		`"\ud83d"`:       {"", false},
		`"a`:             {"", false},
		`"`:              {"", false},
		``:               {"", false},
		`1`:              {"", false},
		`null`:           {"", false},
		`"a" `:           {"", false}, //nolint:gocritic // the space is what is tested
		`"a\"`:           {"", false},
		"\"a\nb\"":       {"", false},
		"\"\xff\"":       {"", false},
	}
	for value, tc := range cases {
		if got, ok := String([]byte(value)); got != tc.want || ok != tc.ok {
			t.Errorf("String(%s) = %q, %t, want %q, %t", value, got, ok, tc.want, tc.ok)
		}
	}
}
