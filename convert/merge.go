// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
)

// mergePatchFor returns the JSON merge patch (RFC 7386) that changes in original what differs between base and wanted. base
// is original but for what was lost on a way there and back, which the patch leaves alone.
func mergePatchFor(original, base, wanted []byte) ([]byte, error) {
	var parsed [3]any
	for i, b := range [][]byte{original, base, wanted} {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber() // exact
		if err := d.Decode(&parsed[i]); err != nil {
			return nil, err
		}
	}
	patch, ok := difference(parsed[0], changed(parsed[0], parsed[1], parsed[2])).(map[string]any)
	if !ok {
		patch = map[string]any{}
	}
	return json.Marshal(patch)
}

// changed returns original with what differs between base and wanted. Lists are taken as a whole, as merge patches do: a test
// holds that nothing is lost in elements of those that Machines and MachineSets have.
func changed(original, base, wanted any) any {
	if reflect.DeepEqual(base, wanted) {
		return original
	}
	w, ok := wanted.(map[string]any)
	b, both := base.(map[string]any)
	o, all := original.(map[string]any)
	if !ok || !both || !all {
		return wanted
	}
	result := maps.Clone(o)
	for name := range b {
		if _, there := w[name]; !there {
			delete(result, name)
		}
	}
	for name, value := range w {
		was, there := b[name]
		now, has := o[name]
		switch {
		case !there:
			result[name] = value
		case reflect.DeepEqual(was, value): // as it is in original, where it may be absent
		case has:
			result[name] = changed(now, was, value)
		default:
			result[name] = value
		}
	}
	return result
}

// difference returns the merge patch that makes to of from; nil if they are the same. What a patch cannot say, that a member
// shall be null, it leaves out.
func difference(from, to any) any {
	f, ok := from.(map[string]any)
	t, both := to.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(from, to) {
			return nil
		}
		return to
	}
	patch := map[string]any{}
	for name := range f {
		if _, there := t[name]; !there {
			patch[name] = nil
		}
	}
	for name, value := range t {
		was, there := f[name]
		if !there {
			patch[name] = value
		} else if d := difference(was, value); d != nil {
			patch[name] = d
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
