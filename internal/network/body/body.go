// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package body reads whole HTTP bodies under a limit: requests of callers and answers of extensions. The limit
// applies to the bytes on the wire and to their decompressed content.
//
// Callers interpret its errors. A Reader is safe for concurrent use.
package body

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/internal/base/bulk"
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

// Guard bounds the reading of one body beyond the size. The zero value adds no bound.
type Guard struct {
	Reserve Reserve
	// Work is told about heavy work. Nil means that nothing is.
	Work Work

	inflating bool
}

// Work takes turns with the heavy work of other bodies.
type Work interface {
	// Step is called before a quarter of a MiB or so is inflated or copied. It may wait, and its error ends the reading.
	Step() error
	// Pause is called before the source is read and before memory is reserved, and Resume afterwards. Resume may wait, and
	// its error ends the reading.
	Pause()
	Resume() error
	// End is called after heavy work.
	End()
}

// step is the number of bytes between two calls of Work.Step.
const step = 256 << 10

// Read reads src to its end. The length is the one that the peer states, or -1, and encoding is the Content-Encoding.
// Read returns a Body with Wire set even if it returns an error.
func (r *Reader) Read(src io.Reader, length int64, encoding string, g Guard) (*Body, error) {
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
		b.Bytes, err = r.readAll(wire, length, g)
	case "gzip", "x-gzip":
		b.Bytes, err = r.unzip(wire, g)
	default:
		err = fmt.Errorf("%w: %q", ErrEncoding, encoding)
	}
	b.Wire = r.Max - max(wire.left, 0)
	if err != nil {
		b.Release()
	}
	return b, err
}

func (r *Reader) unzip(wire *limited, g Guard) ([]byte, error) {
	var src io.Reader = wire
	if g.Work != nil {
		src = pausing{wire, g.Work}
		defer g.Work.End()
	}
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, gzipError(err)
	}
	g.inflating = true
	b, err := r.readAll(&limited{r: z, left: r.Max}, -1, g)
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
func (r *Reader) readAll(src io.Reader, length int64, g Guard) ([]byte, error) {
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
	if err := g.Reserve.room(0, int(first)); err != nil {
		return nil, err
	}
	b := pool.get(int(first) + 1)[:0] // one more byte, to see the end without growing
	for unstepped := 0; ; {
		if len(b) == cap(b) {
			size := max(min(2*cap(b), int(r.Max)+1), min(int(length), int(r.Max))+1)
			err := g.room(cap(b), size)
			if err == nil {
				b, err = g.grow(b, size, pool)
			}
			if err != nil {
				pool.put(b)
				return nil, err
			}
		}
		n, err := src.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if unstepped += n; unstepped >= step && err == nil && g.inflating && g.Work != nil {
			unstepped, err = 0, g.Work.Step()
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && int64(len(b)) < length:
			err = io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			err = nil
		}
		if r.Keep && pool != nil {
			kept := bulk.Clone(b)
			pool.put(b)
			b = kept
		}
		return b, err
	}
}

// room reserves what a larger buffer takes. That may wait for memory, and holds no turn meanwhile.
func (g Guard) room(now, size int) error {
	if g.Work == nil {
		return g.Reserve.room(now, size)
	}
	g.Work.Pause()
	err := g.Reserve.room(now, size)
	if err == nil {
		err = g.Work.Resume()
	}
	return err
}

// grow moves b into a buffer of size bytes, which is heavy work: the system provides the memory of a large one page by
// page, as it is written to.
func (g Guard) grow(b []byte, size int, pool *Pool) ([]byte, error) {
	if size > 2*step && g.Work != nil {
		if err := g.Work.Step(); err != nil {
			return b, err
		}
		if !g.inflating {
			defer g.Work.End() // what follows waits for the source
		}
	}
	grown := pool.get(size)[:len(b)]
	bulk.Copy(grown, b)
	pool.put(b)
	return grown, nil
}

// pausing gives the turn back while it reads.
type pausing struct {
	r    io.Reader
	work Work
}

func (p pausing) Read(b []byte) (int, error) {
	p.work.Pause()
	n, err := p.r.Read(b)
	if err == nil {
		err = p.work.Resume()
	}
	return n, err
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
