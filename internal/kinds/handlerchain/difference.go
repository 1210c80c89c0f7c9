// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// missing stands for a value that does not exist, which is not null.
type missing struct{}

// differences appends the JSON pointers of the values that differ between a and b, in order, each as far down as there
// are objects. Lists differ as a whole. The meter counts the pointers, each of which has the names above it.
func differences(found []string, at string, a, b any, m *jsonpatch.Meter) ([]string, error) {
	inA, isA := a.(map[string]any)
	inB, isB := b.(map[string]any)
	_, noA := a.(missing)
	_, noB := b.(missing)
	if deeper := isA && isB || isA && noB && len(inA) > 0 || noA && isB && len(inB) > 0; !deeper {
		if jsonpatch.Equal(a, b) {
			return found, nil
		}
		return append(found, at), nil
	}
	all := map[string]struct{}{}
	for _, names := range []map[string]any{inA, inB} {
		for name := range names {
			all[name] = struct{}{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		below := at + "/" + jsonpointer.Escape(name)
		err := m.Pointer(len(below))
		if err == nil {
			found, err = differences(found, below, member(inA, name), member(inB, name), m)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Difference is a value that differs between two JSON texts. Got or Want is empty where the value does not exist.
type Difference struct{ Pointer, Got, Want string }

// Differences returns what differs between two JSON texts, in order, each as far down as there are objects.
func Differences(got, want []byte) ([]Difference, error) {
	return DifferencesWithin(got, want, jsonpatch.Guard{})
}

// DifferencesWithin is Differences under a Guard. What is in the texts is counted before it is built; an error that is
// a *hook.Error is one of the Guard, or says that a text has too much in it.
func DifferencesWithin(got, want []byte, g jsonpatch.Guard) ([]Difference, error) {
	values := make([]any, 2)
	var m jsonpatch.Meter
	for i, text := range [][]byte{got, want} {
		m = jsonpatch.Meter{Guard: g} // the limits are for one text
		v, err := m.Parse(text)
		if err == nil {
			err = m.Flush()
		}
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	pointers, err := differences(nil, "", values[0], values[1], &m)
	if err != nil {
		return nil, err
	}
	var found []Difference
	for _, pointer := range pointers {
		found = append(found, Difference{
			Pointer: pointer, Got: textAt(values[0], pointer), Want: textAt(values[1], pointer),
		})
	}
	return found, m.Flush()
}

// textAt returns the JSON of the value at a pointer.
func textAt(v any, pointer string) string {
	if pointer != "" {
		for name := range strings.SplitSeq(pointer[1:], "/") {
			object, _ := v.(map[string]any)
			below, ok := object[jsonpointer.Unescape(name)]
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
