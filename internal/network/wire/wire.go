// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is the codec of the gateway's messages over gRPC. It counts the elements of a message on the wire,
// before it builds any of them: a peer can write an element in two bytes, and it takes a hundred times as much in
// memory. It also inflates messages, within the memory of their calls; gRPC would do so before there is any. The suite
// of faults has bombs of items and of gzip.
//
// It does not classify errors: the kind of the same error differs between a request and an answer. A Codec is safe
// for concurrent use.
package wire

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that Codec adds to
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// ErrTooMany reports that a message has more elements than limits.Elements.
var ErrTooMany = fmt.Errorf(
	"has more than %d list elements, map entries and unknown members in total", limits.Elements)

// Codec is gRPC's codec of protobuf messages, with a limit on their elements.
type Codec struct {
	encoding.CodecV2
	pool *body.Pool
	most int64 // bytes of a proto.Message that is no *Message; 0 for no limit
}

var _ encoding.CodecV2 = Codec{}

// New returns a Codec.
func New() Codec { return Codec{CodecV2: encoding.GetCodecV2("proto"), pool: &body.Pool{}} }

// Message is a message to receive under a bound of memory. Unmarshal accepts it wherever it accepts a proto.Message.
type Message struct {
	Message proto.Message
	// Max is the limit of an inflated message, in bytes. Zero means limits.BodyBytes.
	Max int64
	// Size is set to the number of bytes of the message, inflated.
	Size int
	// Reserve is called with the number of bytes that the message takes, before they are allocated. Its error ends
	// Unmarshal. Nil means that nothing is reserved.
	Reserve func(bytes int64) error
	// Work is the heavy work of the call, which a large message takes a turn for. Nil bounds nothing.
	Work *budget.Work
	// Err is the error of receiving the message: ErrTooMany, one of Reserve, one of package body, or about bytes that are
	// no message. It is not that of Unmarshal, because gRPC would answer that one by itself, and end the call with a text
	// of its own.
	Err error
}

// Unmarshal reads a message, v, which is a proto.Message, or a *Message that gets the error in place of the caller. It
// fails with ErrTooMany if the message has more elements than limits.Elements, and then has not built any of it.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *Message:
		v.Err = v.unmarshal(data, c.pool)
		return nil
	case proto.Message:
		if c.most > 0 && int64(data.Len()) > c.most {
			return body.ErrTooLarge
		}
		return (&Message{Message: v, Max: c.most}).unmarshal(data, c.pool)
	}
	return fmt.Errorf("cannot read %T: want a proto.Message", v)
}

// Marshal writes v, which is a proto.Message, Sized or Held.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case Sized:
		return v.marshal()
	case Held:
		return v.marshal()
	case proto.Message:
		return SizeOf(v).marshal()
	}
	return c.CodecV2.Marshal(v)
}

func (b *Message) unmarshal(data mem.BufferSlice, pool *body.Pool) error {
	if isZipped(data) {
		return b.inflate(data, pool)
	}
	// One copy in one piece, as gRPC's codec makes it, too, and one in the message.
	b.Size = data.Len()
	if err := b.reserve(2 * int64(b.Size)); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	defer b.Work.End()
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return b.read(buffer.ReadOnlyData())
}

// begin takes a turn for a large message.
func (b *Message) begin() error {
	if b.Size <= budget.Step {
		return nil
	}
	return b.Work.Step()
}

// read reads the message from its text.
func (b *Message) read(text []byte) error {
	elements, err := Count(text, b.Message.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	if err := b.reserve(int64(elements) * elementCost); err != nil {
		return err
	}
	return proto.Unmarshal(text, b.Message)
}

// reserveFrom is the number of bytes up to which nothing is reserved: what a stream takes anyway.
const reserveFrom = 64 << 10

// elementCost is what an element takes in memory, in bytes, besides its text.
const elementCost = 320

func (b *Message) reserve(bytes int64) error {
	if b.Reserve == nil || bytes < reserveFrom {
		return nil
	}
	return b.Reserve(bytes)
}
