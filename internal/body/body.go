// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body reads whole HTTP bodies under a limit: requests of callers and answers of extensions. The limit
// applies to the bytes on the wire and to their decompressed content.
//
// Callers interpret its errors. A Reader is safe for concurrent use.
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

// The errors about the body itself. Read returns any other error of the source unchanged.
var (
	// ErrTooLarge means that the body has more bytes than the limit.
	ErrTooLarge = errors.New("body is too large")
	// ErrEncoding means that the Content-Encoding is not gzip.
	ErrEncoding = errors.New("Content-Encoding is not supported")
	// ErrGzip means that the body is not the gzip stream that it claims to be. It is joined to the cause.
	ErrGzip = errors.New("body is not valid gzip")
)

const (
	// maxFirstBuffer bounds the memory allocated for a stated length before any data has arrived.
	maxFirstBuffer = 256 << 10
	// defaultFirstBuffer is the size of the first buffer for a body of unknown length.
	defaultFirstBuffer = 4 << 10
)

// Reader reads bodies.
type Reader struct {
	// Max is the limit in bytes.
	Max int64
	// Pool supplies the memory, which Body.Release returns. Nil means to allocate it.
	Pool *Pool
	// Keep makes bodies live as long as they are referenced. Each has its own memory of exactly its size; only bodies
	// of unknown length are collected in pooled memory.
	Keep bool
}

// Body is a body that has been read.
type Body struct {
	// Bytes is the decompressed content.
	Bytes []byte
	// Wire is the number of bytes read from the source, before decompression.
	Wire int64

	pool *Pool
}

// Release returns the memory of the body to its pool. Nothing may refer to Bytes afterwards.
func (b *Body) Release() {
	if b.pool != nil {
		b.pool.put(b.Bytes)
		b.Bytes, b.pool = nil, nil
	}
}

// Reserve is called with a number of bytes before that many are allocated for a body. Its error ends the reading. A few
// KiB are allocated without it. Nil means that nothing is reserved.
type Reserve func(bytes int64) error

// Read reads src to its end. The length is the one that the peer states, or -1, and encoding is the Content-Encoding.
// Read returns a Body with Wire set even if it returns an error.
func (r *Reader) Read(src io.Reader, length int64, encoding string, reserve Reserve) (*Body, error) {
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
		b.Bytes, err = r.readAll(wire, length, reserve)
	case "gzip", "x-gzip":
		b.Bytes, err = r.unzip(wire, reserve)
	default:
		err = fmt.Errorf("%w: %q", ErrEncoding, encoding)
	}
	b.Wire = r.Max - max(wire.left, 0)
	if err != nil {
		b.Release()
	}
	return b, err
}

func (r *Reader) unzip(wire *limited, reserve Reserve) ([]byte, error) {
	z, err := gzip.NewReader(wire)
	if err != nil {
		return nil, gzipError(err)
	}
	b, err := r.readAll(&limited{r: z, left: r.Max}, -1, reserve)
	if err != nil {
		return b, gzipError(err)
	}
	return b, nil
}

// gzipError joins ErrGzip to errors of the compression, as opposed to errors of the source.
func gzipError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return errors.Join(ErrGzip, err)
	}
	return err
}

// readAll reads src to its end. It takes little memory until the first bytes have come.
func (r *Reader) readAll(src io.Reader, length int64, reserve Reserve) ([]byte, error) {
	pool, first := r.Pool, length
	switch {
	case length < 0:
		first = defaultFirstBuffer
	case length > maxFirstBuffer:
		first = maxFirstBuffer
	}
	if r.Keep && length >= 0 {
		pool = nil
	}
	if err := reserve.room(0, int(first)); err != nil {
		return nil, err
	}
	b := pool.get(int(first) + 1)[:0] // one more byte, to see the end without growing
	for {
		if len(b) == cap(b) {
			size := max(2*cap(b), min(int(length), int(r.Max))+1)
			if err := reserve.room(cap(b), size); err != nil {
				pool.put(b)
				return nil, err
			}
			grown := pool.get(size)[:len(b)]
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

// reserveFrom is the number of bytes up to which nothing is reserved.
const reserveFrom = 64 << 10

// room reserves what a buffer of size bytes takes beyond the one that it replaces, which is free then.
func (r Reserve) room(now, size int) error {
	if r == nil || size <= reserveFrom {
		return nil
	}
	if now <= reserveFrom {
		now = 0
	}
	return r(int64(size - now))
}

// limited reads at most left bytes, and returns ErrTooLarge if there are more.
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
