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
	const object = ` { "a" : 1 , "metadata":{"labels":{"namespace":"no"},"name\u0073pace" : "ns" ,"x":[{"namespace":"no"}]}, "text":"t", "a":2, "e":{}, "\\u0062":3, "last":[1, 2]} `
	cases := map[string]struct {
		raw  string
		path []string
		want string
		ok   bool
	}{
		"Whole":          {` [1] `, nil, `[1]`, true},
		"LastOfTwo":      {object, []string{"a"}, `2`, true},
		"Nested":         {object, []string{"metadata", "labels", "namespace"}, `"no"`, true},
		"EscapedName":    {object, []string{"metadata", "namespace"}, `"ns"`, true},
		"BackslashName":  {object, []string{`\u0062`}, `3`, true},
		"NotUnescaped":   {object, []string{`b`}, ``, false},
		"Last":           {object, []string{"last"}, `[1, 2]`, true},
		"Absent":         {object, []string{"metadata", "name"}, ``, false},
		"InEmpty":        {object, []string{"e", "name"}, ``, false},
		"BelowText":      {object, []string{"text", "name"}, ``, false},
		"BelowList":      {object, []string{"metadata", "x", "namespace"}, ``, false},
		"Nothing":        {``, []string{"a"}, ``, false},
		"NothingAtAll":   {``, nil, ``, false},
		"GarbageAfter":   {`{"a":{"b":1},garbage`, []string{"a", "b"}, ``, false},
		"GarbageBefore":  {`{garbage,"a":1}`, []string{"a"}, ``, false},
		"GarbageInValue": {`{"b":[}],"a":1}`, []string{"a"}, ``, false},
		"Truncated":      {`{"a":{"b"`, []string{"a", "b"}, ``, false},
		"EndsInName":     {`{"a`, []string{"a"}, ``, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := []byte(tc.raw)
			got, ok := Lookup(raw, tc.path...)
			if string(got) != tc.want || ok != tc.ok {
				t.Errorf("Lookup(%s, %v) = %s, %t, want %s, %t", tc.raw, tc.path, got, ok, tc.want, tc.ok)
			}
			if ok && !within(got, raw) {
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
