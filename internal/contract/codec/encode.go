// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

const (
	// smallRaw is the size in bytes up to which a raw object is copied into the envelope: a segment of its own would
	// cost more than the copy.
	smallRaw = 512
	// The envelope is written in chunks of these sizes. A new one begins after a raw object where little room is left,
	// so that written bytes never move, or where the chunk has grown: what it has grown from stays as long as the body.
	firstChunk = 1 << 10
	nextChunk  = 16 << 10
	littleRoom = 512
)

// encoder writes one message.
type encoder struct {
	buf []byte

	// With split, large raw objects become segments of their own; segments holds everything before buf[from:].
	split    bool
	segments [][]byte
	from     int
	size     int64 // of segments

	guard   Guard
	max     int64 // bytes of the whole text
	checked int   // len(buf) when room was called last; negative if that was in a chunk before
}

const (
	// roomStep is the number of bytes of the envelope that are written between two looks at the limits.
	roomStep = 64 << 10
	// maxText is the length of a text that is written at once: escaped, it may be six times as long.
	maxText = 16 << 10
)

// grown calls room if a step of the envelope was written since it was called last.
func (e *encoder) grown() error {
	if len(e.buf)-e.checked < roomStep {
		return nil
	}
	return e.room()
}

// room returns an error if more was written than may be, and reserves what the next step needs, if it has as much.
func (e *encoder) room() error {
	step := max(len(e.buf)-e.checked, roomStep)
	e.checked = len(e.buf)
	if e.size+int64(len(e.buf)-e.from) > e.max {
		return ErrTooLarge
	}
	if e.guard.Reserve == nil {
		return nil
	}
	return e.guard.Reserve(2 * int64(step)) // the buffer doubles as it grows
}

// text writes a string. A long one is written in parts, because its escaped form may be much longer.
func (e *encoder) text(s string) error {
	if len(s) <= maxText {
		e.buf = jsonscan.AppendString(e.buf, s)
		return nil
	}
	e.buf = append(e.buf, '"')
	for len(s) > 0 {
		n := min(maxText, len(s))
		for n < len(s) && n > maxText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		begin := len(e.buf)
		e.buf = jsonscan.AppendString(e.buf, s[:n])
		e.buf = append(e.buf[:begin], e.buf[begin+1:len(e.buf)-1]...)
		if err := e.grown(); err != nil {
			return err
		}
		s = s[n:]
	}
	e.buf = append(e.buf, '"')
	return nil
}

// message writes a message as an object.
func (e *encoder) message(t *table, from message) error {
	e.buf = append(e.buf, '{')
	empty := true
	unknown := *t.unknownOf(from)
	for i := range t.fields {
		written, err := e.field(&t.fields[i], from, unknown)
		if err != nil {
			return err
		}
		empty = empty && !written
	}
	if len(unknown) > 0 {
		written, err := e.unknown(t, unknown)
		if err != nil {
			return err
		}
		empty = empty && !written
	}
	// A comma follows every member; the brace replaces the last one.
	if empty {
		e.buf = append(e.buf, '}')
	} else {
		e.buf[len(e.buf)-1] = '}'
	}
	return nil
}

// field writes one member and a comma, or nothing if it is absent.
func (e *encoder) field(f *field, from message, unknown map[string]*hooksv1alpha1.JSON) (bool, error) {
	if absent(f, from) {
		return false, nil
	}
	e.buf = append(e.buf, f.prefix...)
	if err := e.value(f, from, unknown); err != nil {
		return false, err
	}
	if err := e.grown(); err != nil {
		return false, err
	}
	e.buf = append(e.buf, ',')
	return true, nil
}

// absent reports whether a member is left out.
func absent(f *field, from message) bool {
	if f.always {
		return false
	}
	switch f.shape {
	case shapeRaw, shapeJSON:
		return isNull(rawOf(f, from)) // as a null is read
	case shapeString:
		return *pointer[string](from, f.index) == ""
	case shapeEnum:
		return from.enum(f) == 0
	case shapeInt32:
		return *pointer[int32](from, f.index) == 0
	case shapeOptionalInt:
		return *pointer[*int32](from, f.index) == nil
	case shapeBool:
		return !*pointer[bool](from, f.index)
	case shapeOptionalBool:
		return *pointer[*bool](from, f.index) == nil
	case shapeBytes:
		return len(*pointer[[]byte](from, f.index)) == 0
	case shapeStringList:
		return len(*pointer[[]string](from, f.index)) == 0
	case shapeStringMap:
		return len(*pointer[map[string]string](from, f.index)) == 0
	case shapeMessage:
		return from.child(f).isNil()
	case shapeList:
		return from.length(f) == 0
	default: // kind and apiVersion are always written
		return false
	}
}

// value writes the value of a member that is not absent.
func (e *encoder) value(f *field, from message, unknown map[string]*hooksv1alpha1.JSON) error {
	switch f.shape {
	case shapeTypeMeta:
		e.buf = append(append(append(e.buf, '"'), f.text...), '"')
	case shapeString:
		return e.text(*pointer[string](from, f.index))
	case shapeEnum:
		n := from.enum(f)
		if n < 0 || int(n) >= len(f.enum) {
			return unknownEnum(f, n)
		}
		e.buf = append(append(append(e.buf, '"'), f.enum[n]...), '"')
	case shapeInt32:
		e.buf = strconv.AppendInt(e.buf, int64(*pointer[int32](from, f.index)), 10)
	case shapeOptionalInt:
		e.buf = strconv.AppendInt(e.buf, int64(**pointer[*int32](from, f.index)), 10)
	case shapeBool:
		e.buf = strconv.AppendBool(e.buf, *pointer[bool](from, f.index))
	case shapeOptionalBool:
		e.buf = strconv.AppendBool(e.buf, **pointer[*bool](from, f.index))
	case shapeBytes:
		return e.base64(*pointer[[]byte](from, f.index))
	case shapeStringList:
		return e.stringList(*pointer[[]string](from, f.index))
	case shapeStringMap:
		return e.stringMap(*pointer[map[string]string](from, f.index))
	case shapeRaw, shapeJSON:
		e.raw(rawOf(f, from))
	case shapeMessage:
		m := from.child(f)
		if m.isNil() {
			m = newMessage(f.message)
		}
		if err := e.message(f.message, m); err != nil {
			return in(err, f.name)
		}
	case shapeList:
		if _, null := unknown[f.name]; null && from.length(f) == 0 {
			e.buf = append(e.buf, "null"...) // the method unknown checks that it is null
			return nil
		}
		return e.list(f, from)
	}
	return nil
}

// rawOf returns the text of a field of shape raw or JSON.
func rawOf(f *field, from message) []byte {
	if f.shape == shapeRaw {
		return (*pointer[*hooksv1alpha1.RawExtension](from, f.index)).GetRaw()
	}
	return (*pointer[*hooksv1alpha1.JSON](from, f.index)).GetRaw()
}

// isNull reports whether the text of a raw field is empty or null.
func isNull(raw []byte) bool {
	return len(raw) == 0 || (raw[0] == 'n' || raw[0] <= ' ') && string(bytes.Trim(raw, " \t\r\n")) == "null"
}

func (e *encoder) list(f *field, from message) error {
	e.buf = append(e.buf, '[')
	for i, m := range from.children(f) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if m.isNil() {
			return wrong(f.name+element(i), -1, "is nil")
		}
		if err := e.message(f.message, m); err != nil {
			return in(err, f.name+element(i))
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) stringList(texts []string) error {
	e.buf = append(e.buf, '[')
	for i, text := range texts {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.text(text); err != nil {
			return err
		}
		if err := e.grown(); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) stringMap(entries map[string]string) error {
	e.buf = append(e.buf, '{')
	for i, key := range slices.Sorted(maps.Keys(entries)) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if err := e.text(key); err != nil {
			return err
		}
		e.buf = append(e.buf, ':')
		if err := e.text(entries[key]); err != nil {
			return err
		}
		if err := e.grown(); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return nil
}

// unknown writes the members that the schema does not know, in the order of their names, each with a comma.
func (e *encoder) unknown(t *table, unknown map[string]*hooksv1alpha1.JSON) (bool, error) {
	written := false
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		raw := unknown[name].GetRaw()
		switch known, err := t.checkUnknown(name, raw); {
		case err != nil:
			return false, err
		case known:
			continue // the null of a list, which is written in its place
		}
		if err := e.text(name); err != nil {
			return false, err
		}
		e.buf = append(e.buf, ':')
		e.raw(raw)
		e.buf = append(e.buf, ',')
		written = true
		if err := e.grown(); err != nil {
			return false, err
		}
	}
	return written, nil
}

// base64 writes bytes, all of them at once.
func (e *encoder) base64(data []byte) error {
	if data == nil {
		e.buf = append(e.buf, "null"...)
		return nil
	}
	if n := int64(base64.StdEncoding.EncodedLen(len(data))); n >= roomStep {
		if e.size+int64(len(e.buf)-e.from)+n > e.max {
			return ErrTooLarge
		}
		if e.guard.Reserve != nil {
			if err := e.guard.Reserve(n); err != nil {
				return err
			}
		}
	}
	e.buf = append(e.buf, '"')
	e.buf = base64.StdEncoding.AppendEncode(e.buf, data)
	e.buf = append(e.buf, '"')
	return nil
}

// raw writes a raw object verbatim; an empty one is null.
func (e *encoder) raw(raw []byte) {
	switch {
	case len(raw) == 0:
		e.buf = append(e.buf, "null"...)
	case e.split && len(raw) > smallRaw:
		e.segment(e.buf[e.from:len(e.buf):len(e.buf)])
		e.segment(raw)
		e.from = len(e.buf)
		if cap(e.buf)-len(e.buf) < littleRoom || cap(e.buf) > 4*nextChunk {
			e.buf, e.from, e.checked = make([]byte, 0, nextChunk), 0, e.checked-len(e.buf)
		}
	default:
		e.buf = append(e.buf, raw...)
	}
}

func (e *encoder) segment(b []byte) {
	e.segments = append(e.segments, b)
	e.size += int64(len(b))
}

// body returns everything that was written, unless it is too much.
func (e *encoder) body() (Body, error) {
	e.segment(e.buf[e.from:len(e.buf):len(e.buf)])
	if e.size > e.max {
		return Body{}, ErrTooLarge
	}
	return Body{segments: e.segments, size: e.size}, nil
}
