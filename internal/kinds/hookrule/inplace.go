// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// inPlace is what rules of the hooks may say that ask whether an update in place is possible.
func inPlace() category {
	return category{
		hooks:   func(h *catalog.Hook) bool { return h.Category == catalog.InPlaceUpdate && h.ReadOnly() },
		fields:  []string{"allow"},
		compile: compileInPlace,
	}
}

// inPlaceRule answers CanUpdateMachine or CanUpdateMachineSet.
type inPlaceRule struct {
	hook    *catalog.Hook
	objects []inPlaceObject
}

// inPlaceObject is an object of the request, with the paths in it that may change. None is within another.
type inPlaceObject struct {
	name  protoreflect.Name // of the field
	paths []allowedPath
}

type allowedPath struct {
	names   []string // of the members that lead to it
	kept    int      // how many of the first names Cluster API does not let a patch remove
	affects bool     // availability
}

func compileInPlace(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer {
	at, compared := path.Child("allow"), "/spec"
	if in.hook.Hook == "CanUpdateMachineSet" {
		compared = "/spec/template/spec"
	}
	rule := &inPlaceRule{hook: in.hook}
	var begins []string
	fields := in.hook.Request.Descriptor().Fields().ByName("current").Message().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !f.IsMap() { // unknown_members
			rule.objects = append(rule.objects, inPlaceObject{name: f.Name()})
			begins = append(begins, "/"+f.JSONName()+compared)
		}
	}
	if len(spec.Allow) == 0 {
		in.errs = append(in.errs, field.Required(at, "must have the paths that may change in place"))
	}
	for i := range in.bounded(len(spec.Allow), at) {
		place, at := spec.Allow[i].Path, at.Index(i).Child("path")
		object := slices.IndexFunc(begins, func(begin string) bool { return within(place, begin) })
		switch {
		case place == "":
			in.errs = append(in.errs, field.Required(at, "must be a JSON pointer, such as "+begins[0]+"/version"))
			continue
		case len(place) > limits.AllowedPathBytes:
			in.errs = append(in.errs, field.TooLong(at, "", limits.AllowedPathBytes))
			continue
		case object < 0:
			in.errs = append(in.errs, field.Invalid(at, place, fmt.Sprintf(
				"must be one of %s, or a path below one of them: Cluster API accepts no other changes from %s",
				strings.Join(begins, ", "), in.hook.Hook)))
			continue
		case strings.Contains(place, "//") || strings.HasSuffix(place, "/"):
			in.errs = append(in.errs, field.Invalid(at, place, "must have no empty name"))
			continue
		}
		in.noOverlap(spec.Allow[:i], place, at)
		names := strings.Split(place, "/")[2:]
		for i := range names {
			names[i] = jsonpointer.Unescape(names[i])
		}
		affects := spec.Allow[i].AffectsAvailability
		rule.objects[object].paths = append(rule.objects[object].paths, allowedPath{
			names: names, kept: strings.Count(compared, "/"), affects: affects == nil || *affects,
		})
	}
	return rule
}

// noOverlap notes a mistake if a path is one of those before it, or one of the two is within the other.
func (in *compilation) noOverlap(before []v1alpha1.HookRuleAllow, place string, at *field.Path) {
	for _, other := range before {
		switch {
		case other.Path == place:
			in.errs = append(in.errs, field.Duplicate(at, place))
		case other.Path != "" && (within(place, other.Path) || within(other.Path, place)):
			in.errs = append(in.errs, field.Invalid(at, place, fmt.Sprintf(
				"overlaps with %s: leave out the longer path", text.Cut(other.Path, limits.QuotedBytes))))
		}
	}
}

// within reports whether a JSON pointer is a place, or below it.
func within(pointer, place string) bool {
	rest, ok := strings.CutPrefix(pointer, place)
	return ok && (rest == "" || rest[0] == '/')
}

// answer implements answerer: Success, with patches of what differs where it may change.
func (r *inPlaceRule) answer(v *policy.Evaluation, request proto.Message) (proto.Message, error) {
	answer := r.hook.Response.New()
	fields := answer.Descriptor().Fields()
	success := hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS.Number()
	answer.Set(fields.ByName("status"), protoreflect.ValueOfEnum(success))
	changes, affects := false, false
	for i := range r.objects {
		o := &r.objects[i]
		patch, affected, err := o.patch(rawOf(request, "current", o.name), rawOf(request, "desired", o.name),
			jsonpatch.Guard(v.Guard()))
		if _, ok := errors.AsType[*hook.Error](err); err != nil && !ok {
			err = hook.Errorf(hook.InvalidRequest, "%s: %s", o.name, err)
		}
		if err != nil {
			return nil, err
		}
		if patch != nil {
			changes, affects = true, affects || affected
			p := &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: patch}
			answer.Set(fields.ByName(o.name+"_patch"), protoreflect.ValueOfMessage(p.ProtoReflect()))
		}
	}
	if changes {
		answer.Set(fields.ByName("affects_availability"), protoreflect.ValueOfBool(affects))
	}
	return answer.Interface(), nil
}

// rawOf returns the text of an object of a request in one of its states.
func rawOf(request proto.Message, state, object protoreflect.Name) []byte {
	m := request.ProtoReflect()
	m = m.Get(m.Descriptor().Fields().ByName(state)).Message()
	raw, _ := m.Get(m.Descriptor().Fields().ByName(object)).Message().Interface().(*hooksv1alpha1.RawExtension)
	return raw.GetRaw()
}

// patch returns the JSON patch of current, or nil if nothing changes that may, and whether it affects availability.
func (o *inPlaceObject) patch(current, desired []byte, g jsonpatch.Guard) (patch []byte, affects bool, err error) {
	if len(o.paths) == 0 || len(current) == 0 || len(desired) == 0 || bytes.Equal(current, desired) {
		return nil, false, nil
	}
	m := jsonpatch.Meter{Guard: g}
	now, err := m.Parse(current)
	if err != nil {
		return nil, false, err
	}
	wanted, err := m.Parse(desired)
	if err != nil {
		return nil, false, err
	}
	for i := range o.paths {
		operation := o.paths[i].change(now, wanted)
		if operation == nil {
			continue
		}
		// The text is made now: the next operation may change within the value of this one.
		patch = jsonpatch.Append(append(patch, ','), operation)
		affects = affects || o.paths[i].affects
		now, err = jsonpatch.ApplyParsed(now, hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, []any{operation}, &m)
		if err != nil {
			return nil, false, err
		}
	}
	if patch == nil {
		return nil, false, nil
	}
	patch[0] = '['
	return append(patch, ']'), affects, m.Flush()
}

// change returns the operation that makes the path in now what it is in wanted, or nil if it is the same, or cannot
// be: a path that leads through a list, or through something that is no object, changes nothing.
func (p *allowedPath) change(now, wanted any) map[string]any {
	was, depth, isObject := lookup(now, p.names)
	value, wantedDepth, _ := lookup(wanted, p.names)
	exists, wantedExists := depth == len(p.names), wantedDepth == len(p.names)
	switch {
	case exists && wantedExists && jsonpatch.Equal(was, value), !exists && !wantedExists, !exists && !isObject:
		return nil
	case wantedExists:
		to := min(depth+1, len(p.names)) // with the objects above it that do not exist
		for _, name := range slices.Backward(p.names[to:]) {
			value = map[string]any{name: value}
		}
		return map[string]any{"op": "add", "path": pointer(p.names[:to]), "value": value}
	}
	// What has nothing else in it, and is not wanted either, goes with it.
	from := len(p.names)
	for from-1 > max(p.kept, wantedDepth) {
		above, _, _ := lookup(now, p.names[:from-1])
		if object, _ := above.(map[string]any); len(object) > 1 {
			break
		}
		from--
	}
	if from <= p.kept {
		return nil
	}
	return map[string]any{"op": "remove", "path": pointer(p.names[:from])}
}

// lookup follows the names of members, and returns the last value that exists, how many names lead to it, and whether
// it is an object.
func lookup(v any, names []string) (last any, depth int, isObject bool) {
	for {
		object, ok := v.(map[string]any)
		if depth == len(names) {
			return v, depth, ok
		}
		below, exists := object[names[depth]]
		if !exists {
			return v, depth, ok
		}
		v, depth = below, depth+1
	}
}

// pointer returns the JSON pointer of names.
func pointer(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + jsonpointer.Escape(name))
	}
	return b.String()
}
