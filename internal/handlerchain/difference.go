// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"maps"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/jsonpatch"
)

// escaped encodes a name for a JSON pointer.
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

var unescaped = strings.NewReplacer("~0", "~", "~1", "/")

// missing stands for a value that does not exist, which is not null.
type missing struct{}

// differences returns the JSON pointers of the values that differ between a and b, in order, each as far down as there
// are objects. Lists differ as a whole.
func differences(at string, a, b any) []string {
	inA, isA := a.(map[string]any)
	inB, isB := b.(map[string]any)
	_, noA := a.(missing)
	_, noB := b.(missing)
	if deeper := isA && isB || isA && noB && len(inA) > 0 || noA && isB && len(inB) > 0; !deeper {
		if jsonpatch.Equal(a, b) {
			return nil
		}
		return []string{at}
	}
	all := map[string]struct{}{}
	for _, names := range []map[string]any{inA, inB} {
		for name := range names {
			all[name] = struct{}{}
		}
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found = append(found, differences(at+"/"+escaped.Replace(name), member(inA, name), member(inB, name))...)
	}
	return found
}

// Difference is a value that differs between two JSON texts. Got or Want is empty where the value does not exist.
type Difference struct{ Pointer, Got, Want string }

// Differences returns what differs between two JSON texts, in order, each as far down as there are objects.
func Differences(got, want []byte) ([]Difference, error) {
	a, err := jsonpatch.Guard{}.Parse(got)
	if err != nil {
		return nil, err
	}
	b, err := jsonpatch.Guard{}.Parse(want)
	if err != nil {
		return nil, err
	}
	var found []Difference
	for _, pointer := range differences("", a, b) {
		found = append(found, Difference{Pointer: pointer, Got: textAt(a, pointer), Want: textAt(b, pointer)})
	}
	return found, nil
}

// textAt returns the JSON of the value at a pointer.
func textAt(v any, pointer string) string {
	if pointer != "" {
		for name := range strings.SplitSeq(pointer[1:], "/") {
			object, _ := v.(map[string]any)
			below, ok := object[unescaped.Replace(name)]
			if !ok {
				return ""
			}
			v = below
		}
	}
	return string(jsonpatch.Append(nil, v))
}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return missing{}
}

// within reports whether a JSON pointer is one of the places, or below one.
func within(pointer string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		rest, ok := strings.CutPrefix(pointer, place)
		return ok && (rest == "" || rest[0] == '/')
	})
}
