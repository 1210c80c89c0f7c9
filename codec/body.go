// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"io"
)

// Body is the JSON of a message in segments, some of which alias the message's raw objects. It is a value, safe for
// concurrent use as long as the message is not changed.
type Body struct {
	segments [][]byte
	size     int64
}

// BodyOf returns text, a JSON of a message, as a Body that aliases it.
func BodyOf(text []byte) Body { return Body{segments: [][]byte{text}, size: int64(len(text))} }

// Size returns the length in bytes.
func (b Body) Size() int64 { return b.size }

// Reader returns a new reader at the beginning. It is an io.WriterTo too. Each reader belongs to one goroutine.
func (b Body) Reader() io.Reader { return &bodyReader{segments: b.segments} }

// Bytes returns the text in one piece, a copy.
func (b Body) Bytes() []byte { return bytes.Join(b.segments, nil) }

// bodyReader reads segment after segment.
type bodyReader struct {
	segments [][]byte // what is left; shared, so only the slice of slices is moved
	offset   int      // into the first
}

var (
	_ io.Reader   = (*bodyReader)(nil)
	_ io.WriterTo = (*bodyReader)(nil)
)

// Read fills p as far as there is text.
func (r *bodyReader) Read(p []byte) (int, error) {
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

// WriteTo writes the rest to w, without copying it first.
func (r *bodyReader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for len(r.segments) > 0 {
		n, err := w.Write(r.segments[0][r.offset:])
		total += int64(n)
		r.offset += n
		if err != nil {
			return total, err
		}
		r.segments, r.offset = r.segments[1:], 0
	}
	return total, nil
}
