// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readahead reads a connection in few system calls while a large body arrives. Package tls reads record by
// record, of 16 KiB each. What this takes is bounded for all connections together.
package readahead

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/internal/limits"
)

const (
	// size is how much is read at once: eight full TLS records and a little more.
	size = 128<<10 + 1<<10
	// bulk is how much fills the reader's own buffer if more is to come. Small bodies never do.
	bulk = 8 << 10
)

// buffers holds buffers of size bytes, and taken counts those that are in use.
var (
	buffers = sync.Pool{New: func() any { return new([size]byte) }}
	taken   atomic.Int64
)

// take returns a buffer, or nil if too many are in use.
func take() *[size]byte {
	if taken.Add(1) > limits.ReadAheads {
		taken.Add(-1)
		return nil
	}
	b, _ := buffers.Get().(*[size]byte)
	return b
}

func give(b *[size]byte) {
	buffers.Put(b)
	taken.Add(-1)
}

// Reader reads a connection. Its zero value is ready for use. Close may be called at any time; otherwise it is for one
// goroutine at a time.
type Reader struct {
	mu     sync.Mutex // of all fields; held while Read reads the connection
	buffer *[size]byte
	rest   []byte // of the buffer, not yet read
	more   bool   // the last read of the connection was filled
	closed bool
}

// Read reads from the connection, which must return no error together with data. It takes a buffer only if there is
// probably something to fill it, and gives it back with its last byte.
func (r *Reader) Read(conn io.Reader, p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil && r.more && !r.closed {
		r.buffer = take()
	}
	if r.buffer == nil {
		n, err := conn.Read(p)
		r.more = n >= bulk && n == len(p)
		return n, err
	}
	if len(r.rest) == 0 {
		n, err := conn.Read(r.buffer[:])
		r.more = n == size
		if n == 0 || err != nil {
			r.release()
			return 0, err
		}
		r.rest = r.buffer[:n]
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		r.release()
	}
	return n, nil
}

// Close gives back the buffer. The connection must be closed before, so that no Read waits for it.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.release()
}

func (r *Reader) release() {
	if r.buffer != nil {
		give(r.buffer)
		r.buffer, r.rest = nil, nil
	}
}
