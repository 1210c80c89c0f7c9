// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Sized is a message to send whose size is known, in bytes on the wire. Each message in it keeps its own size as well,
// so that none is gone through twice; they must not be changed before it is sent.
type Sized struct {
	Message proto.Message
	// Rest is written after the message, as fields that it lacks. It may be nil.
	Rest Rest
	Size int // of both
}

// Rest is a part of a message that writes itself.
type Rest interface {
	io.WriterTo
	// Size returns the number of bytes that WriteTo writes.
	Size() int
}

// SizeOf determines the size of m.
func SizeOf(m proto.Message) Sized { return Sized{Message: m, Size: proto.Size(m)} }

// With adds a rest.
func (m Sized) With(rest Rest) Sized { return Sized{m.Message, rest, m.Size + rest.Size()} }

// sized writes messages whose sizes were determined before.
var sized = proto.MarshalOptions{UseCachedSize: true}

func (m Sized) marshal() (mem.BufferSlice, error) {
	if m.Size > 2*pieceSize || m.Rest != nil {
		return inPieces(m.Message.ProtoReflect(), m.Rest)
	}
	if mem.IsBelowBufferPoolingThreshold(m.Size) {
		text, err := sized.MarshalAppend(make([]byte, 0, m.Size), m.Message)
		if err != nil {
			return nil, err
		}
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	pool := mem.DefaultBufferPool()
	piece := pool.Get(m.Size)
	if _, err := sized.MarshalAppend((*piece)[:0], m.Message); err != nil {
		pool.Put(piece)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(piece, pool)}, nil
}

const (
	// pieceSize is the size of the pieces of a large message, for which gRPC has a pool.
	pieceSize = 32 << 10
	// pooledSize is the size from which gRPC's pool keeps buffers of any size.
	pooledSize = 1 << 20
)

// pieceWriter writes a message in pieces, each of which gRPC gives back when it has been sent: a message in one piece
// stays in memory until its end has been sent.
type pieceWriter struct {
	done mem.BufferSlice
	text []byte // of the piece that is being written
}

// inPieces writes the elements of m's lists of messages, whose sizes were determined before, into pieces, after its
// other fields, and then the rest.
func inPieces(m protoreflect.Message, rest Rest) (mem.BufferSlice, error) {
	var w pieceWriter
	others := m.Type().New()
	others.SetUnknown(m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !isListOfMessages(f) {
			others.Set(f, v)
		}
		return true
	})
	err := w.write(others.Interface(), proto.Size(others.Interface()), nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if err == nil && isListOfMessages(f) {
			err = w.writeList(f, v.List())
		}
		return err == nil
	})
	if err == nil && rest != nil {
		_, err = rest.WriteTo(&w)
	}
	w.finish()
	if err != nil {
		w.done.Free()
		return nil, err
	}
	return w.done, nil
}

func isListOfMessages(f protoreflect.FieldDescriptor) bool {
	return f.IsList() && f.Kind() == protoreflect.MessageKind
}

func (w *pieceWriter) writeList(f protoreflect.FieldDescriptor, list protoreflect.List) error {
	for i := range list.Len() {
		m := list.Get(i).Message().Interface()
		size := sized.Size(m)
		head := protowire.AppendTag(make([]byte, 0, 16), f.Number(), protowire.BytesType)
		if err := w.write(m, size, protowire.AppendVarint(head, uint64(size))); err != nil {
			return err
		}
	}
	return nil
}

// write writes head and m, which has size bytes, into one piece.
func (w *pieceWriter) write(m proto.Message, size int, head []byte) (err error) {
	if size += len(head); len(w.text)+size > cap(w.text) {
		w.finish()
		w.text = newPiece(size)
	}
	w.text, err = sized.MarshalAppend(append(w.text, head...), m)
	return err
}

// Write writes text into as many pieces as it takes.
func (w *pieceWriter) Write(text []byte) (int, error) {
	for left := text; len(left) > 0; {
		if len(w.text) == cap(w.text) {
			w.finish()
			w.text = newPiece(pieceSize)
		}
		n := min(len(left), cap(w.text)-len(w.text))
		w.text, left = append(w.text, left[:n]...), left[n:]
	}
	return len(text), nil
}

func (w *pieceWriter) finish() {
	text := w.text // the buffer keeps the pointer
	w.text = nil
	switch {
	case len(text) == 0:
	case isPooled(cap(text)):
		w.done = append(w.done, mem.NewBuffer(&text, mem.DefaultBufferPool()))
	default:
		w.done = append(w.done, mem.SliceBuffer(text))
	}
}

// newPiece returns an empty piece with room for size bytes.
func newPiece(size int) []byte {
	size = max(size, pieceSize)
	if !isPooled(size) {
		return make([]byte, 0, size)
	}
	return (*mem.DefaultBufferPool().Get(size))[:0:size]
}

// isPooled reports whether a piece of a size comes from the pool, which would have 1 MiB for one a little larger.
func isPooled(size int) bool { return size <= pieceSize || size > pooledSize }
