// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// errMalformed reports bytes that are no message.
var errMalformed = errors.New("malformed message")

// maxDepth bounds the recursion into messages that contain themselves. The contract has none.
const maxDepth = 100

// Count returns the number of elements of lists and entries of maps, at all levels, of a message of type d on the wire.
// It allocates nothing. It returns ErrTooMany as soon as there are more than limits.Elements, and another error if text
// is no message.
func Count(text []byte, d protoreflect.MessageDescriptor) (int, error) {
	c := counter{}
	if err := c.message(text, d, 0); err != nil {
		return c.elements, err
	}
	return c.elements, nil
}

type counter struct{ elements int }

// message counts the elements in the fields of a message.
func (c *counter) message(b []byte, d protoreflect.MessageDescriptor, depth int) error {
	if depth > maxDepth {
		return errMalformed
	}
	fields := d.Fields()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return errMalformed
		}
		value := b[:n]
		b = b[n:]
		if fd := fields.ByNumber(number); fd != nil {
			if err := c.field(value, kind, fd, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// field counts one occurrence of a field.
func (c *counter) field(value []byte, kind protowire.Type, fd protoreflect.FieldDescriptor, depth int) error {
	if kind != protowire.BytesType && !isNumber(fd.Kind()) {
		return nil // of another type, so that it is kept as bytes
	}
	if fd.Cardinality() == protoreflect.Repeated {
		elements := 1
		if kind == protowire.BytesType && isNumber(fd.Kind()) {
			elements = len(value) // packed: at most, as each takes at least a byte
		}
		if c.elements += elements; c.elements > limits.Elements {
			return ErrTooMany
		}
	}
	// An entry of a map is a message itself, whose value may be one.
	if fd.Message() == nil {
		return nil
	}
	inner, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return errMalformed
	}
	return c.message(inner, fd.Message(), depth+1)
}

// isNumber reports whether values of a kind may be packed.
func isNumber(k protoreflect.Kind) bool {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	}
	return true
}
