// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"errors"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/jsonscan"
	"github.com/hookgate/hookgate/internal/limits"
)

// convertObject returns the object in the other version and adds the members that this cannot express to lost. at names
// the object in errors.
func (o *Objects) convertObject(
	g Guard, t []byte, k *kind, from, at string, lost *lossSet,
) ([]byte, error) {
	src, dst := k.sides(from)
	m := &meter{guard: g}
	memory := src.arenas.Get().(*arena)
	defer memory.release()
	decoded, err := decodeObject(t, src.schema, m, memory)
	if err != nil {
		return nil, decodeError(err, "convert %s to %s: it is not a %s of %s", at, dst.name, k.name, from)
	}
	var restored any
	if decoded.data != "" && dst == k.hub {
		memory := dst.arenas.Get().(*arena)
		defer memory.release()
		data, err := decodeObject([]byte(decoded.data), dst.schema, m, memory)
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
	c := comparison{path: make([]step, 0, 16), lost: func(path []step) { lost.add(k.path + "." + pathOf(path)) }}
	c.compareObject(src.schema, valueOf(decoded.value), valueOf(back))

	tree := &place{}
	for _, m := range decoded.unknown {
		if len(m.path) == 0 {
			continue // written unchanged
		}
		if belongs(m, src.schema, dst.schema) {
			tree.add(m)
		} else {
			lost.add(k.path + "." + m.lossOf())
		}
	}
	out, err := decoded.write(valueOf(converted), k, dst, tree, lost)
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
func (o *object) write(converted value, k *kind, dst *side, tree *place, lost *lossSet) ([]byte, error) {
	out := make([]byte, 0, o.size)
	out = append(out, `{"kind":"`+k.name+`","apiVersion":"`+group+"/"+dst.name+`"`...)
	if o.metadata != nil {
		out = append(append(out, `,"metadata":`...), o.metadata...)
	}
	for _, f := range dst.schema.fields {
		if isHeader(f.name) {
			continue
		}
		below := tree.below[step{name: f.name, index: isMember}]
		v := f.in(converted)
		if below == nil && f.omits(v) {
			continue
		}
		var err error
		out = append(append(out, ','), f.key...)
		if below == nil {
			if out, err = appendJSON(out, f.schema, v); err != nil {
				return nil, err
			}
			continue
		}
		written, err := appendJSON(nil, f.schema, v)
		if err != nil {
			return nil, err
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

// compareObject compares everything that is converted.
func (c *comparison) compareObject(s *schema, src, back value) {
	for _, f := range s.fields {
		if !isHeader(f.name) {
			c.path = append(c.path[:0], step{name: f.name, index: isMember})
			c.compare(f.schema, f.in(src), f.in(back))
		}
	}
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
	e := beyond(err)
	switch {
	case e == nil:
		return hook.Errorf(hook.InvalidRequest, format+": %s", append(args, err.Error())...)
	case e.Kind == hook.TooLarge:
		return hook.Errorf(e.Kind, "convert %s to %s: %s", args[0], args[1], e.Message)
	}
	return e
}

// beyond returns the error of a limit or of the Guard, or nil if err is another one.
func beyond(err error) *hook.Error {
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
