// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
)

// parse returns the value of a JSON text as encoding/json builds it, with numbers as they are written. It calls Step
// before a large one.
func (g Guard) parse(text []byte) (v any, err error) {
	if len(text) >= largeText {
		if err := g.step(); err != nil {
			return nil, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// compose returns the JSON text of a value. Raw JSON in it keeps its notation.
func compose(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would make a text six times as long
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// mergePatchFor returns the JSON merge patch (RFC 7386) that applies the differences between base and wanted to
// original. base is original without the members lost in a round trip, which the patch does not touch. Lists are
// replaced as a whole, as merge patches do; a test holds that nothing is lost in elements of the lists of Machines and
// MachineSets.
func mergePatchFor(original, base, wanted []byte, g Guard) ([]byte, error) {
	var objects [3]map[string]any
	for i, text := range [...][]byte{original, base, wanted} {
		v, err := g.parse(text)
		if err != nil {
			return nil, err
		}
		var ok bool
		if objects[i], ok = v.(map[string]any); !ok {
			return nil, errors.New("it is not an object")
		}
	}
	// The change may name members that original lacks, because conversions fill in defaults.
	changed, _ := merge(objects[0], difference(objects[1], objects[2])).(map[string]any)
	return compose(difference(objects[0], changed))
}

// merge returns the object that a merge patch (RFC 7386) makes of doc, which it does not change. Like the library, it
// leaves null out of objects in lists that are new.
func merge(doc, patch any) any {
	d, ok := doc.(map[string]any)
	if !ok {
		return withoutNulls(patch)
	}
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	d = maps.Clone(d)
	for name, value := range p {
		was, ok := d[name]
		switch {
		case value == nil:
			delete(d, name)
		case !ok || was == nil:
			d[name] = withoutNulls(value)
		default:
			d[name] = merge(was, value)
		}
	}
	return d
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

// difference returns the merge patch that makes wanted of base.
func difference(base, wanted map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range wanted {
		was, ok := base[name]
		old, isObject := was.(map[string]any)
		next, staysObject := value.(map[string]any)
		switch {
		case isObject && staysObject:
			if within := difference(old, next); len(within) > 0 {
				patch[name] = within
			}
		case !ok || !equalTrees(was, value):
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

// equalTrees reports whether two values that parse has returned are equal. Numbers are if they are written alike.
func equalTrees(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, ok := b[name]; !ok || !equalTrees(value, other) {
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
			if !equalTrees(a[i], b[i]) {
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
