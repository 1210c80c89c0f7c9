// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Elements are the elements that a partial message lacks, to be written as protobuf. They refer to the body, which must
// not change while they are in use. They are immutable, and safe for concurrent use.
type Elements struct {
	body  []byte
	texts []byte // those that are not in the body as they are
	parts []part
	size  int
}

// part is a length-delimited field on the wire: its tag, the size of its content, and the text that is its content, or
// noText for a message, whose fields are the parts that follow.
type part struct {
	tag, size uint32
	at        uint32 // of the text in body, or from inTexts on in texts; noText for a message
}

const (
	inTexts = 1 << 31
	noText  = math.MaxUint32
	// mostBody is the size of the largest body that a part can refer to. A larger one is built.
	mostBody = 1 << 30
	// partSize is what a part takes, in bytes.
	partSize = 12
	// The first list of parts has one for each bytesPerPart of the body, as GeneratePatches has, and at most firstParts.
	bytesPerPart = 128
	firstParts   = 2048
)

// Size returns the number of bytes that WriteTo writes.
func (e *Elements) Size() int { return e.size }

// WriteTo writes the elements, as fields of the message that lacks them.
func (e *Elements) WriteTo(w io.Writer) (written int64, err error) {
	var head []byte
	write := func(b []byte) {
		if err == nil {
			var n int
			n, err = w.Write(b)
			written += int64(n)
		}
	}
	for i := range e.parts {
		p := &e.parts[i]
		head = protowire.AppendVarint(protowire.AppendVarint(head[:0], uint64(p.tag)), uint64(p.size))
		write(head)
		switch {
		case p.at == noText:
		case p.at >= inTexts:
			write(e.texts[p.at-inTexts:][:p.size])
		default:
			write(e.body[p.at:][:p.size])
		}
	}
	return written, err
}

// tagOf returns the tag of a field of wire type LEN.
func tagOf(number protoreflect.FieldNumber) uint32 {
	return uint32(protowire.EncodeTag(number, protowire.BytesType))
}

// The tags of the fields of an entry of a map, which protobuf defines, and of raw in RawExtension and JSON.
var (
	keyTag, valueTag = tagOf(1), tagOf(2)
	rawTag           = tagOf(numberOf(&hooksv1alpha1.RawExtension{}))
	jsonTag          = tagOf(numberOf(&hooksv1alpha1.JSON{}))
)

func numberOf(m protoreflect.ProtoMessage) protoreflect.FieldNumber {
	return m.ProtoReflect().Descriptor().Fields().ByName("raw").Number()
}

// begun is a message whose parts are being added.
type begun struct {
	part, outer int // its position, and the size of what came before it in the message around it
}

// begin adds the beginning of a message. If no elements are kept, it does nothing, as end and the other methods.
func (d *decoder) begin(tag uint32) (b begun, err error) {
	e := d.partial.elements
	if e == nil {
		return b, nil
	}
	b = begun{part: len(e.parts), outer: e.size}
	e.size = 0
	return b, d.addPart(part{tag: tag, at: noText})
}

// end ends a message.
func (d *decoder) end(b begun) {
	if e := d.partial.elements; e != nil {
		p := &e.parts[b.part]
		p.size = uint32(e.size)
		e.size = b.outer + p.wireSize()
	}
}

// addText adds the string whose value begins at i and ends at end. Protobuf leaves out an empty one.
func (d *decoder) addText(tag uint32, text []byte, i, end int) error {
	switch e := d.partial.elements; {
	case e == nil || len(text) == 0:
		return nil
	case len(text) == end-i-len(`""`):
		return d.addField(part{tag: tag, size: uint32(len(text)), at: uint32(i + 1)})
	}
	return d.addCopy(tag, text)
}

// addCopy adds a text that is not in the body as it is.
func (d *decoder) addCopy(tag uint32, text []byte) error {
	if err := d.meter.text(2 * len(text)); err != nil {
		return err
	}
	e := d.partial.elements
	at := len(e.texts)
	e.texts = append(e.texts, text...)
	return d.addField(part{tag: tag, size: uint32(len(text)), at: inTexts | uint32(at)})
}

// addValue adds an object or a free value, a message with the text from i to end.
func (d *decoder) addValue(tag, raw uint32, i, end int) error {
	if d.partial.elements == nil {
		return nil
	}
	b, err := d.begin(tag)
	if err == nil {
		err = d.addField(part{tag: raw, size: uint32(end - i), at: uint32(i)})
	}
	if err == nil {
		d.end(b)
	}
	return err
}

// addUnknown adds a member that the schema does not know, whose value is from i to end.
func (d *decoder) addUnknown(t *table, name []byte, i, end int) error {
	if d.partial.elements == nil {
		return nil
	}
	b, err := d.begin(t.unknownTag)
	if err == nil {
		err = d.addCopy(keyTag, name)
	}
	if err == nil {
		err = d.addValue(valueTag, jsonTag, i, end)
	}
	if err == nil {
		d.end(b)
	}
	return err
}

func (d *decoder) addField(p part) error {
	d.partial.elements.size += p.wireSize()
	return d.addPart(p)
}

func (d *decoder) addPart(p part) error {
	e := d.partial.elements
	if len(e.parts) == cap(e.parts) {
		more := max(len(e.parts), min(len(e.body)/bytesPerPart, firstParts), 1)
		if err := d.meter.text((len(e.parts) + more) * partSize); err != nil {
			return err
		}
		e.parts = slices.Grow(e.parts, more)
	}
	e.parts = append(e.parts, p)
	return nil
}

// wireSize returns the size of the field with its tag.
func (p *part) wireSize() int {
	return protowire.SizeVarint(uint64(p.tag)) + protowire.SizeBytes(int(p.size))
}
