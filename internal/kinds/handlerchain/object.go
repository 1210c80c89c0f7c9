// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"errors"
	"fmt"
	"strings"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// object is an object of a request, as patched so far.
type object struct {
	text []byte         // nil while tree has changes that it lacks
	size int            // about that of the text
	tree map[string]any // nil until it is needed
}

var (
	errNoObject     = errors.New("the request has no such object")
	errNotAnObject  = errors.New("it is not a JSON object")
	errNoPatchType  = errors.New("its patchType is neither JSONPatch nor JSONMergePatch")
	errNoSuchParent = errors.New("a parent of the patched member is not an object")
)

// parse reads all values of o.tree.
func (o *object) parse(g jsonpatch.Guard) error {
	m := jsonpatch.Meter{Guard: g}
	if err := o.open(&m); err != nil {
		return err
	}
	if _, err := m.Read(o.tree); err != nil {
		return err
	}
	return m.Flush()
}

// open sets o.tree to the members of the object.
func (o *object) open(m *jsonpatch.Meter) error {
	if o.tree != nil {
		return nil
	}
	if len(o.text) == 0 {
		return errNoObject
	}
	if err := m.Text(len(o.text)); err != nil {
		return err
	}
	v, err := m.OpenTo(o.text, "spec", "template", "spec") // which most patches of templates get to
	if err != nil {
		return err
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return errNotAnObject
	}
	o.tree, o.size = tree, len(o.text)
	return nil
}

// apply applies a patch. Of what it makes of the object, only what is at the places is kept, which are JSON pointers;
// a place that the patched object lacks stays as it was. It reports whether the patch has content. After an error, the
// object must not be used.
func (o *object) apply(
	t hooksv1alpha1.PatchType, patch []byte, places []string, g jsonpatch.Guard,
) (changed bool, err error) {
	switch {
	case t != hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH && t != hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH:
		return false, errNoPatchType
	case jsonpatch.Empty(t, patch):
		return false, nil
	}
	m := jsonpatch.Meter{Guard: g}
	if err := o.open(&m); err != nil {
		return false, err
	}
	changes, err := m.Parse(patch)
	if err != nil {
		return false, ofAnswer(err)
	}
	if jsonpatch.Within(t, changes, places) {
		_, err = jsonpatch.ApplyParsed(o.tree, t, changes, &m)
	} else {
		err = o.applyElsewhere(t, changes, places, &m)
	}
	if err != nil {
		return false, ofAnswer(err)
	}
	o.text = nil
	return true, m.Flush()
}

// ofAnswer returns the error of a patch: that it is too large is a mistake of the answer, not of the request.
func ofAnswer(err error) error {
	if refused, ok := errors.AsType[*hook.Error](err); ok && refused.Kind == hook.TooLarge {
		return errors.New(refused.Message)
	}
	return err
}

// grown returns an error if patches have made so much of an object that the next step cannot be given it. The fault is
// that of the patches unless it was so before.
func (o *object) grown(original []byte) error {
	if o.tree == nil || !tooManyValues(o.json()) || tooManyValues(original) {
		return nil
	}
	return fmt.Errorf("with the patches applied, it has more than %d values", limits.ObjectElements)
}

// tooManyValues reports whether the text of an object has more values than can be read.
func tooManyValues(text []byte) bool {
	if len(text) <= limits.ObjectElements { // each takes a byte, at least
		return false
	}
	var m jsonpatch.Meter
	return m.Values(text) != nil
}

// applyElsewhere applies a patch that may change more than is kept, to a copy.
func (o *object) applyElsewhere(t hooksv1alpha1.PatchType, changes any, places []string, m *jsonpatch.Meter) error {
	base, err := m.Read(jsonpatch.Raw(o.json()))
	if err != nil {
		return err
	}
	patched, err := jsonpatch.ApplyParsed(base, t, changes, m)
	if err != nil {
		return err
	}
	if _, err := m.Read(o.tree); err != nil {
		return err
	}
	for _, place := range places {
		if v, ok := get(patched, place); ok {
			if err := put(o.tree, place, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// json returns the text of the object.
func (o *object) json() []byte {
	if o.text == nil && o.tree != nil {
		o.text = jsonpatch.Append(make([]byte, 0, o.size+o.size/8), o.tree)
		o.size = len(o.text)
	}
	return o.text
}

// get returns the value at a place in v.
func get(v any, place string) (any, bool) {
	for name := range strings.SplitSeq(place[1:], "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

func has(v any, place string) bool {
	_, ok := get(v, place)
	return ok
}

// put sets the value at a place in an object, with the objects above it.
func put(object map[string]any, place string, v any) error {
	name, rest, more := strings.Cut(place[1:], "/")
	if !more {
		object[name] = v
		return nil
	}
	below, ok := object[name]
	if !ok {
		below = map[string]any{}
		object[name] = below
	}
	within, ok := below.(map[string]any)
	if !ok {
		return errNoSuchParent
	}
	return put(within, "/"+rest, v)
}
