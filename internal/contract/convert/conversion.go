// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"errors"
	"reflect"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// convertObject returns the object in the other version and adds the members that this cannot express to lost. at names
// the object in errors.
func (o *Objects) convertObject(
	g jsonpatch.Guard, t []byte, k *kind, from, at string, lost *lossSet,
) ([]byte, error) {
	src, dst := k.sides(from)
	m := &jsonpatch.Meter{Guard: g}
	decoded, err := decodeObject(t, src.typ, m)
	if err != nil {
		return nil, decodeError(err, "convert %s to %s: it is not a %s of %s", at, dst.name, k.name, from)
	}
	var restored any
	if decoded.data != "" && dst == k.hub {
		data, err := decodeObject([]byte(decoded.data), dst.typ, m)
		if err != nil {
			return nil, decodeError(err, "convert %s to %s: its annotation %s is not a %s of %s",
				at, dst.name, dataAnnotation, k.name, dst.name)
		}
		restored = data.value
	}
	converted, err := src.convert(decoded.value, restored, o.refs.APIVersion)
	if err != nil {
		return nil, conversionError(at, from, dst.name, err)
	}
	back, err := dst.convert(converted, nil, o.anyAPIVersion)
	if err != nil {
		return nil, conversionError(at, dst.name, from, err)
	}
	c := comparison{lost: func(path []step) { lost.add(k.path + "." + pathOf(path)) }}
	c.compareObject(decoded.value, back)

	tree := &place{}
	for _, m := range decoded.unknown {
		if len(m.path) == 0 {
			continue // written unchanged
		}
		if belongs(m, src.typ, dst.typ) {
			tree.add(m)
		} else {
			lost.add(k.path + "." + m.lossOf())
		}
	}
	out, err := decoded.write(converted, k, dst, tree, lost)
	if err != nil {
		return nil, conversionError(at, from, dst.name, err)
	}
	if len(out) > limits.BodyBytes {
		return nil, hook.Errorf(hook.TooLarge, "convert %s to %s: the result is larger than %d MiB",
			at, dst.name, limits.BodyBytes>>20)
	}
	return out, nil
}

// write returns the JSON of converted, an object of the side dst: with the metadata of the object that it was converted
// from, and the members in tree. It adds members without a place to lost.
func (o *object) write(converted any, k *kind, dst *side, tree *place, lost *lossSet) ([]byte, error) {
	out := []byte(`{"kind":"` + k.name + `","apiVersion":"` + group + "/" + dst.name + `"`)
	if o.metadata != nil {
		out = append(append(out, `,"metadata":`...), o.metadata...)
	}
	for _, f := range fieldsOf(dst.typ).all {
		below := tree.below[step{name: f.name, index: isMember}]
		v := f.in(reflect.ValueOf(converted).Elem())
		if isHeader(f.name) || below == nil && f.omitZero && v.IsZero() {
			continue
		}
		written, err := jsonpatch.Compose(v.Addr().Interface())
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, `,"`...), f.name...), `":`...)
		if below == nil {
			out = append(out, written...)
			continue
		}
		out, _ = below.onto(out, &jsonscan.Scanner{Text: written}, 0,
			func(m member) { lost.add(k.path + "." + m.lossOf()) })
	}
	for _, m := range o.unknown {
		if len(m.path) == 0 {
			out = append(append(append(append(out, ','), m.key...), ':'), m.value...)
		}
	}
	return append(out, '}'), nil
}

// isHeader reports whether a member of an object is the same in all versions, or written anew.
func isHeader(name string) bool { return name == "kind" || name == "apiVersion" || name == "metadata" }

// anyAPIVersion is like APIVersion for conversions that only find losses: an unknown version is one.
func (o *Objects) anyAPIVersion(group, kind string) (string, error) {
	if v, err := o.refs.APIVersion(group, kind); err == nil {
		return v, nil
	}
	return group + "/", nil
}

// decodeError returns the error of an object that could not be decoded: one that is malformed, or beyond a limit, or
// whose memory the Guard refused.
func decodeError(err error, format string, args ...any) error {
	e := tooLarge(err)
	switch {
	case e == nil:
		return hook.Errorf(hook.InvalidRequest, format+": %s", append(args, err.Error())...)
	case e.Kind == hook.TooLarge:
		return hook.Errorf(e.Kind, "convert %s to %s: %s", args[0], args[1], e.Message)
	}
	return e
}

// tooLarge returns the error of a limit or of the Guard, or nil if err is another one.
func tooLarge(err error) *hook.Error {
	var e *hook.Error
	switch {
	case errors.Is(err, context.Canceled):
		return hook.Errorf(hook.Canceled, "the caller left").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return hook.Errorf(hook.Timeout, "no answer before the deadline").WithCause(err)
	case errors.As(err, &e):
		return e
	}
	return nil
}

func conversionError(at, from, to string, err error) error {
	kind := hook.Conversion
	if e, ok := errors.AsType[*hook.Error](err); ok {
		kind = e.Kind
	}
	return hook.Errorf(kind, "convert %s from %s to %s: %s", at, from, to, err.Error()).WithCause(err)
}
