// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Response converts the answer to a converted request back. It also returns the sorted paths of changes that the
// caller's version cannot express. Response does not change resp, and returns it if there is nothing to convert.
//
//   - A patch for an object that was converted becomes a JSONMergePatch for the object that the caller sent. It
//     contains only what the handler changed, and not what the conversion of the request lost.
//   - A variable of DiscoverVariables gets its metadata under the names of both v1beta1 and v1beta2, because the
//     request does not say which one the caller reads.
//
// Its errors are of kind BadResponse if a patch does not apply or changes the kind or version of the object, and
// Conversion if the result cannot be converted.
func (c Converted) Response(resp proto.Message) (proto.Message, []string, error) {
	if c.to == "" {
		return resp, nil, nil
	}
	if variables, ok := resp.(*hooksv1alpha1.DiscoverVariablesResponse); ok {
		converted, err := withBothMetadata(variables, &jsonpatch.Meter{Guard: c.guard})
		return converted, nil, err
	}
	if c.current == nil {
		return resp, nil, nil
	}
	m := resp.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(c.current.kind.path + "Patch")
	if field == nil || !m.Has(field) {
		return resp, nil, nil
	}
	patch, ok := m.Get(field).Message().Interface().(*hooksv1alpha1.Patch)
	if !ok || noChange(patch) {
		return resp, nil, nil
	}
	var lost lossSet
	merge, err := c.mergePatch(patch, &lost)
	if err != nil {
		return nil, nil, err
	}
	to := shallow(m)
	to.Set(field, protoreflect.ValueOfMessage((&hooksv1alpha1.Patch{
		PatchType:      hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH,
		Patch:          merge,
		UnknownMembers: patch.GetUnknownMembers(),
	}).ProtoReflect()))
	return to.Interface(), lost.sorted(), nil
}

// noChange reports whether a patch is the same in every version: it does nothing, or the caller will refuse it.
func noChange(p *hooksv1alpha1.Patch) bool {
	return p.GetPatchType() == hooksv1alpha1.PatchType_PATCH_TYPE_UNSPECIFIED ||
		jsonpatch.Empty(p.GetPatchType(), p.GetPatch())
}

// mergePatch turns a patch for the handler's object into a JSON merge patch for the caller's. It converts the handler's
// object and the patched object to the caller's version; the differences are the changes of the handler.
func (c Converted) mergePatch(patch *hooksv1alpha1.Patch, lost *lossSet) ([]byte, error) {
	s := c.current
	at := s.kind.path + "Patch"
	if err := (&jsonpatch.Meter{Guard: c.guard}).Values(s.caller); err != nil {
		return nil, decodeError(err, "convert %s to %s", s.at, s.from)
	}
	m := &jsonpatch.Meter{Guard: c.guard}
	if err := m.Values(patch.GetPatch()); err != nil {
		return nil, patchError(err, at, s.from, s.at)
	}
	patched, err := apply(patch, s.handler, m)
	if err != nil {
		return nil, patchError(err, at, s.from, s.at)
	}
	if h, err := headerOf(patched); err != nil || h.apiVersion != group+"/"+s.to || h.kind != s.kind.name {
		return nil, hook.Errorf(hook.BadResponse, "convert %s to %s: the patch changes the kind or the version "+
			"of %s",
			at, s.from, s.at)
	}
	var before, after lossSet
	base, err := c.objects.convertObject(c.guard, s.handler, s.kind, s.to, s.at, &before)
	if err != nil {
		return nil, err
	}
	wanted, err := c.objects.convertObject(c.guard, patched, s.kind, s.to, s.at, &after)
	if err != nil {
		// The handler wrote it, not the caller.
		if kind := hook.KindOf(err); kind == hook.InvalidRequest || kind == hook.TooLarge {
			return nil, hook.Errorf(hook.BadResponse, "convert %s to %s: the result of the patch: %s",
				at, s.from, err.Error()).WithCause(err)
		}
		return nil, err
	}
	for path := range after.paths {
		if !before.paths[path] {
			lost.add(path)
		}
	}
	merge, err := mergePatchFor(s.caller, base, wanted, c.guard)
	if e := tooLarge(err); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, hook.Errorf(hook.Internal, "convert %s to %s: %s", at, s.from, err.Error())
	}
	return merge, nil
}

// patchError returns the error of a patch that has too many values, or cannot be applied.
func patchError(err error, at, to, of string) error {
	if e := tooLarge(err); e != nil && e.Kind != hook.TooLarge {
		return e
	} else if e != nil {
		return hook.Errorf(hook.BadResponse, "convert %s to %s: %s", at, to, e.Message)
	}
	return hook.Errorf(hook.BadResponse, "convert %s to %s: the patch cannot be applied to %s in the form "+
		"that was sent to the handler",
		at, to, of).WithCause(err)
}

// apply returns the object that a patch makes of another.
func apply(p *hooksv1alpha1.Patch, object []byte, m *jsonpatch.Meter) ([]byte, error) {
	doc, err := m.Guard.Parse(object)
	if err != nil {
		return nil, err
	}
	if doc, err = jsonpatch.Apply(doc, p.GetPatchType(), p.GetPatch(), m); err != nil {
		return nil, err
	}
	return jsonpatch.Compose(doc)
}

// mergePatchFor returns the JSON merge patch (RFC 7386) that applies the differences between base and wanted to
// original. base is original without the members lost in a round trip, which the patch does not touch. Lists are
// replaced as a whole, as merge patches do; a test holds that nothing is lost in elements of the lists of Machines and
// MachineSets.
func mergePatchFor(original, base, wanted []byte, g jsonpatch.Guard) ([]byte, error) {
	var objects [3]map[string]any
	for i, text := range [...][]byte{original, base, wanted} {
		v, err := g.Parse(text)
		if err != nil {
			return nil, err
		}
		var ok bool
		if objects[i], ok = v.(map[string]any); !ok {
			return nil, errors.New("it is not an object")
		}
	}
	// The change may name members that original lacks, because conversions fill in defaults.
	changed, _ := jsonpatch.Merge(objects[0], jsonpatch.Difference(objects[1], objects[2])).(map[string]any)
	return jsonpatch.Compose(jsonpatch.Difference(objects[0], changed))
}
