// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body reads whole HTTP bodies under a limit, on both sides of the gateway: callers' requests and extensions'
// answers. The limit holds for what is on the wire and for what it decompresses to.
//
// It knows nothing of hooks; what an error means is for its callers to say. A Reader is safe for concurrent use.
package body

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The errors that are about the body; any other is the source's own, or one of package gzip.
var (
	// ErrTooLarge is a body with more bytes than the limit.
	ErrTooLarge = errors.New("body is too large")
	// ErrEncoding is a Content-Encoding other than gzip.
	ErrEncoding = errors.New("Content-Encoding is not supported")
	// ErrGzip is a body that says it is gzip and is not. It is joined to the cause.
	ErrGzip = errors.New("body is not valid gzip")
)

const (
	// believed is how much must have come before memory is taken for all that the peer says will come.
	believed = 256 << 10
	// firstGuess is what is taken for a body of unknown size.
	firstGuess = 4 << 10
)

// Reader reads bodies.
type Reader struct {
	// Max is the limit in bytes.
	Max int64
	// Pool, if there is one, is where memory comes from: see Body.Release.
	Pool *Pool
	// Keep says that bodies are kept for as long as anything refers to them: they get memory of their own, of their
	// size, and the pool is only for those whose size turns out at their end.
	Keep bool
}

// Body is a body that has been read.
type Body struct {
	// Bytes are what was read, decompressed.
	Bytes []byte
	// Wire is how many bytes came, compressed if they were.
	Wire int64

	pool *Pool
}

// Release gives the memory back to the pool that it came from. Nothing may refer to Bytes any more.
func (b *Body) Release() {
	if b.pool != nil {
		b.pool.put(b.Bytes)
		b.Bytes, b.pool = nil, nil
	}
}

// Read reads src to its end. length is what the peer says it is, -1 if it does not; encoding is the Content-Encoding. The
// Body is set, with Wire, also if there is an error.
func (r *Reader) Read(src io.Reader, length int64, encoding string) (*Body, error) {
	if length > r.Max {
		return &Body{}, ErrTooLarge
	}
	wire := &limited{r: src, left: r.Max}
	b := &Body{}
	if !r.Keep {
		b.pool = r.Pool
	}
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		b.Bytes, err = r.readAll(wire, length)
	case "gzip", "x-gzip":
		b.Bytes, err = r.unzip(wire)
	default:
		err = fmt.Errorf("%w: %q", ErrEncoding, encoding)
	}
	b.Wire = r.Max - max(wire.left, 0)
	if err != nil {
		b.Release()
	}
	return b, err
}

func (r *Reader) unzip(wire *limited) ([]byte, error) {
	z, err := gzip.NewReader(wire)
	if err != nil {
		return nil, gzipError(err)
	}
	b, err := r.readAll(&limited{r: z, left: r.Max}, -1)
	if err != nil {
		return b, gzipError(err)
	}
	return b, nil
}

// gzipError marks the errors that are those of the compression, not of the source.
func gzipError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return errors.Join(ErrGzip, err)
	}
	return err
}

// readAll reads src to its end. It takes little memory before something has come, and then what the body needs.
func (r *Reader) readAll(src io.Reader, length int64) ([]byte, error) {
	pool, first := r.Pool, length
	switch {
	case length < 0:
		first = firstGuess
	case length > believed:
		first = believed
	}
	if r.Keep && length >= 0 {
		pool = nil
	}
	b := pool.get(int(first) + 1)[:0] // one more, so that the end is seen without room for more
	for {
		if len(b) == cap(b) {
			grown := pool.get(max(2*cap(b), min(int(length), int(r.Max))+1))[:len(b)]
			copy(grown, b)
			pool.put(b)
			b = grown
		}
		n, err := src.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == nil:
			continue
		case err == io.EOF && int64(len(b)) < length:
			err = io.ErrUnexpectedEOF
		case err == io.EOF:
			err = nil
		}
		if r.Keep && pool != nil {
			kept := bytes.Clone(b)
			pool.put(b)
			b = kept
		}
		return b, err
	}
}

// limited reads at most left bytes, and fails if there are more.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}
