// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

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

// inPieces writes the elements of m's lists of messages into pieces, after its other fields.
func inPieces(m protoreflect.Message) (mem.BufferSlice, error) {
	var w pieceWriter
	rest := m.Type().New()
	rest.SetUnknown(m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !isListOfMessages(f) {
			rest.Set(f, v)
		}
		return true
	})
	err := w.write(rest.Interface(), nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if err == nil && isListOfMessages(f) {
			err = w.writeList(f, v.List())
		}
		return err == nil
	})
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
		head := protowire.AppendTag(make([]byte, 0, 16), f.Number(), protowire.BytesType)
		if err := w.write(m, protowire.AppendVarint(head, uint64(proto.Size(m)))); err != nil {
			return err
		}
	}
	return nil
}

// write writes head and m into one piece.
func (w *pieceWriter) write(m proto.Message, head []byte) (err error) {
	size := len(head) + proto.Size(m)
	if len(w.text)+size > cap(w.text) {
		w.finish()
		w.text = newPiece(size)
	}
	w.text, err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(append(w.text, head...), m)
	return err
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
