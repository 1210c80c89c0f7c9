// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"io"
	"slices"

	"github.com/hookgate/hookgate/internal/base/bulk"
)

// Body is the JSON of a message, in segments that may alias the message's raw objects. It is safe for concurrent use as
// long as the message does not change.
type Body struct {
	segments [][]byte
	size     int64
}

// BodyOf returns a Body that consists of text and aliases it.
func BodyOf(text []byte) Body { return Body{segments: [][]byte{text}, size: int64(len(text))} }

// Size returns the length in bytes.
func (b Body) Size() int64 { return b.size }

// Reader returns a new reader of the whole body.
func (b Body) Reader() *BodyReader { return &BodyReader{segments: b.segments} }

// Bytes returns a copy of the text in one slice.
func (b Body) Bytes() []byte { return b.AppendTo(make([]byte, 0, b.size)) }

// AppendTo appends the text to another.
func (b Body) AppendTo(text []byte) []byte {
	text = slices.Grow(text, int(b.size))
	for _, s := range b.segments {
		end := len(text)
		text = text[:end+len(s)]
		bulk.Copy(text[end:], s)
	}
	return text
}

// BodyReader reads a Body, one segment after the other. It is not safe for concurrent use.
type BodyReader struct {
	segments [][]byte // not yet read; shared with the Body, so that only the outer slice may change
	offset   int      // in the first segment
}

var _ io.Reader = (*BodyReader)(nil)

// Read fills p from as many segments as it takes.
func (r *BodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.segments) > 0 {
		c := copy(p[n:], r.segments[0][r.offset:])
		n += c
		r.offset += c
		if r.offset == len(r.segments[0]) {
			r.segments, r.offset = r.segments[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
