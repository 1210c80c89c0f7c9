// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"maps"
)

// Compose returns the JSON text of a value. Raw JSON in it keeps its notation.
func Compose(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would make a text six times as long
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Merge returns the object that a merge patch (RFC 7386) makes of doc, which it does not change. Like the library, it
// leaves null out of objects in lists that are new. Nothing in doc may be Raw.
func Merge(doc, patch any) any {
	merged, _ := (&Meter{}).merge(doc, patch, 0, true) // fails for what is Raw alone
	return merged
}

// merge is Merge at a level of the object, which opens what is Raw and patched. It may change doc unless keep is
// set.
func (m *Meter) merge(doc, patch any, level int, keep bool) (any, error) {
	doc, err := m.Open(doc, level)
	if err != nil {
		return nil, err
	}
	d, ok := doc.(map[string]any)
	if !ok {
		return withoutNulls(patch), nil
	}
	p, ok := patch.(map[string]any)
	if !ok {
		return patch, nil
	}
	if keep {
		d = maps.Clone(d)
	}
	for name, value := range p {
		if value == nil {
			delete(d, name)
			continue
		}
		was, err := m.Open(d[name], level+1)
		if err != nil {
			return nil, err
		}
		if was == nil {
			d[name] = withoutNulls(value)
		} else if d[name], err = m.merge(was, value, level+1, keep); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// withoutNulls removes the members of objects that are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			} else {
				withoutNulls(value)
			}
		}
	case []any:
		for _, value := range v {
			withoutNulls(value)
		}
	}
	return v
}

// Difference returns the merge patch that makes wanted of base.
func Difference(base, wanted map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range wanted {
		was, ok := base[name]
		old, isObject := was.(map[string]any)
		next, staysObject := value.(map[string]any)
		switch {
		case isObject && staysObject:
			if within := Difference(old, next); len(within) > 0 {
				patch[name] = within
			}
		case !ok || !Equal(was, value):
			patch[name] = value
		}
	}
	for name := range base {
		if _, ok := wanted[name]; !ok {
			patch[name] = nil
		}
	}
	return patch
}

// Equal reports whether two values that Parse has returned are equal. Numbers are if they are written alike.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, ok := b[name]; !ok || !Equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}
