// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Response returns the answer to the whole request: a patch of an object of which something was taken out becomes one
// that makes the same change to the whole object, and keeps what was taken out unless the handler writes it. Patches
// that change and test spec.template.spec alone are the same for both, and stay as they are. Response does not change
// resp.
//
// Its errors are of kind BadResponse if a patch does not apply to what the handler saw, or its change cannot be made to
// the whole object, or one of the Guard.
func (r *Reduced) Response(resp proto.Message) (proto.Message, error) {
	answer, ok := resp.(*hooksv1alpha1.GeneratePatchesResponse)
	if !ok || len(r.items) == 0 {
		return resp, nil
	}
	items := slices.Clone(answer.GetItems())
	carried := map[string]bool{} // whether a uid needs it
	for i, patch := range items {
		if r.items[patch.GetUid()] == nil || carried[patch.GetUid()] || isNone(patch) {
			continue
		}
		m := jsonpatch.Meter{Guard: r.guard}
		changes, err := m.Parse(patch.GetPatch())
		if err != nil {
			return nil, r.bad(i, r.items[patch.GetUid()], "the patch is not JSON", err)
		}
		carried[patch.GetUid()] = !alike(patch.GetPatchType(), changes)
	}
	bytes := 0
	for i, patch := range items {
		if carried[patch.GetUid()] && !isNone(patch) {
			of := r.items[patch.GetUid()]
			text, err := r.carry(of, patch)
			if err != nil {
				return nil, r.bad(i, of, "", err)
			}
			items[i] = &hooksv1alpha1.GeneratePatchesResponseItem{
				Uid: patch.GetUid(), PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: text,
				UnknownMembers: patch.GetUnknownMembers(),
			}
		}
		if bytes += len(items[i].GetPatch()); bytes > limits.BodyBytes && len(carried) > 0 {
			return nil, hook.Errorf(hook.BadResponse, "items: the patches, including the members that "+
				"clusterAPIRelease %s removes from requests, are larger than %d MiB", r.release, limits.BodyBytes>>20)
		}
	}
	if len(carried) == 0 {
		return resp, nil
	}
	whole, _ := catalog.Shallow(answer.ProtoReflect()).Interface().(*hooksv1alpha1.GeneratePatchesResponse)
	whole.Items = items
	return whole, nil
}

// isNone reports whether a patch is the same for every object: it changes nothing, or Cluster API will refuse it.
func isNone(p *hooksv1alpha1.GeneratePatchesResponseItem) bool {
	switch p.GetPatchType() {
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH:
		return jsonpatch.Empty(p.GetPatchType(), p.GetPatch())
	}
	return true
}

// same is the part of templates in which nothing is taken out.
const same = "/spec/template/spec"

// alike reports whether a patch reads and writes nothing but the part in which nothing is taken out.
func alike(t hooksv1alpha1.PatchType, changes any) bool {
	if !jsonpatch.Within(t, changes, []string{same}) {
		return false
	}
	operations, _ := changes.([]any)
	return !slices.ContainsFunc(operations, func(operation any) bool {
		o, _ := operation.(map[string]any)
		outside := func(member string) bool {
			path, _ := o[member].(string)
			return path != same && !strings.HasPrefix(path, same+"/")
		}
		return outside("path") || (o["op"] == "copy" || o["op"] == "move") && outside("from")
	})
}

// bad returns the error of a patch.
func (r *Reduced) bad(i int, of *item, problem string, err error) error {
	if e, ok := errors.AsType[*hook.Error](err); ok && e.Kind != hook.TooLarge {
		return e
	}
	if problem == "" {
		problem = err.Error()
	}
	return hook.Errorf(hook.BadResponse, "items[%d] for %s %s, whose template was sent in the form of Cluster API %s: %s",
		i, of.holder.GetKind(), of.holder.GetFieldPath(), r.release, problem).WithCause(err)
}

var errNotAnObject = errors.New("the patch turns the template into something that is not an object")

// carry returns the JSON patch that makes of the whole object what a patch makes of the one that the handler saw, and
// sets both to what they are then.
func (r *Reduced) carry(of *item, patch *hooksv1alpha1.GeneratePatchesResponseItem) ([]byte, error) {
	m := jsonpatch.Meter{Guard: r.guard}
	var values [3]any // of what is not changed, each of its own
	for i, text := range [...][]byte{of.whole, of.seen, of.seen} {
		var err error
		if values[i], err = m.Parse(text); err != nil {
			return nil, err
		}
	}
	whole, before := values[0], values[1]
	if err := m.Values(patch.GetPatch()); err != nil {
		return nil, err
	}
	after, err := jsonpatch.Apply(values[2], patch.GetPatchType(), patch.GetPatch(), &m)
	if err != nil {
		if _, ok := errors.AsType[*hook.Error](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("the patch does not apply to the template: %w", err)
	}
	if _, ok := after.(map[string]any); !ok {
		return nil, errNotAnObject
	}
	next, err := merged(whole, before, after, "")
	if err != nil {
		return nil, err
	}
	operations := difference(nil, "", whole, next)
	of.whole, of.seen = jsonpatch.Append(nil, next), jsonpatch.Append(nil, after)
	return jsonpatch.Append(nil, operations), m.Flush()
}

// merged returns whole with the change from before to after, where whole is before with more members in its objects. It
// changes none of them. An error says at which JSON pointer the change takes more with it than the handler saw.
func merged(whole, before, after any, pointer string) (any, error) {
	if jsonpatch.Equal(before, after) {
		return whole, nil
	}
	w, isObject := whole.(map[string]any)
	a, staysObject := after.(map[string]any)
	if !isObject || !staysObject && (after != nil || jsonpatch.Equal(whole, before)) {
		if !jsonpatch.Equal(whole, before) {
			return nil, fmt.Errorf("the patch replaces %s, of which the handler saw only a part: the change cannot be "+
				"applied to the whole template", pointer)
		}
		return after, nil
	}
	b, _ := before.(map[string]any)
	next := make(map[string]any, len(w))
	for name, value := range w {
		was, seen := b[name]
		wanted, stays := a[name]
		at := pointer + "/" + jsonpointer.Escape(name)
		var err error
		switch inner, nested := value.(map[string]any); {
		case !seen && (!stays || nested && wanted == nil): // what the handler did not see, and does not write
			next[name] = value
		case !seen && nested: // it writes an object of which it did not see any
			next[name], err = merged(value, map[string]any{}, wanted, at)
		case !seen: // it writes what it did not see
			next[name] = wanted
		case stays:
			next[name], err = merged(value, was, wanted, at)
		case nested && isObjectOf(was): // it removes what it saw; what it did not see stays
			var rest any
			if rest, err = merged(inner, was, map[string]any{}, at); err == nil && hasMembers(rest) {
				next[name] = rest
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for name, value := range a {
		if _, ok := w[name]; !ok {
			next[name] = value
		}
	}
	return next, nil
}

func isObjectOf(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func hasMembers(v any) bool {
	o, _ := v.(map[string]any)
	return len(o) > 0
}

// difference appends the operations of a JSON patch (RFC 6902) that makes next of v. Lists are replaced as a whole.
// Values are set with add, which is the same as replace for a member that exists.
func difference(operations []any, pointer string, v, next any) []any {
	a, isObject := v.(map[string]any)
	b, staysObject := next.(map[string]any)
	if !isObject || !staysObject {
		if jsonpatch.Equal(v, next) {
			return operations
		}
		return append(operations, map[string]any{"op": "add", "path": pointer, "value": next})
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[name]; !ok {
			operations = append(operations, map[string]any{"op": "remove", "path": pointer + "/" + jsonpointer.Escape(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		at := pointer + "/" + jsonpointer.Escape(name)
		if was, ok := a[name]; ok {
			operations = difference(operations, at, was, b[name])
		} else {
			operations = append(operations, map[string]any{"op": "add", "path": at, "value": b[name]})
		}
	}
	return operations
}
