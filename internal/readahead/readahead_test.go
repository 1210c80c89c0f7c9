// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package readahead

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/hookgate/hookgate/internal/limits"
)

// counted counts the reads of a reader.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

// through reads conn through a Reader.
type through struct {
	*Reader
	conn io.Reader
}

func (t through) Read(p []byte) (int, error) { return t.Reader.Read(t.conn, p) }

// readAll reads with a buffer of p bytes at a time, as package tls does, and returns what came.
func readAll(t *testing.T, r io.Reader, p int) []byte {
	t.Helper()
	var all bytes.Buffer
	if _, err := io.CopyBuffer(struct{ io.Writer }{&all}, r, make([]byte, p)); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// What arrives is the same, in whatever pieces it comes and is read, and no buffer is kept.
func TestReaderReadsAll(t *testing.T) {
	for _, n := range []int{0, 1, bulk - 1, bulk, bulk + 1, bulk + size - 1, bulk + size, bulk + size + 1, 5 * size} {
		for _, p := range []int{1000, bulk - 1, bulk, 17 << 10, 2 * size} {
			for name, pieces := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader,
			} {
				want := pattern(n)
				if got := readAll(t, through{&Reader{}, pieces(bytes.NewReader(want))}, p); !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %d at a time, %s: %d bytes that differ", n, p, name, len(got))
				}
				if taken.Load() != 0 {
					t.Fatalf("%d bytes, %d at a time, %s: a buffer is still taken at the end", n, p, name)
				}
			}
		}
	}
}

// A large body takes one read for each buffer instead of one for each piece; small reads are those of the reader.
func TestReaderReadsAheadOfBulk(t *testing.T) {
	for name, tc := range map[string]struct{ bytes, buffer, reads int }{
		"bulk":              {bulk + 8*size, bulk, 1 + 8 + 1}, // the last one sees the end
		"below":             {20 * bulk, bulk - 1, 20 + 1 + 1},
		"a body that fits":  {bulk, 2 * bulk, 2},
		"more in one piece": {bulk + 1, bulk, 3},
	} {
		c := &counted{Reader: bytes.NewReader(pattern(tc.bytes))}
		readAll(t, through{&Reader{}, c}, tc.buffer)
		if c.reads != tc.reads {
			t.Errorf("%s: %d reads, want %d", name, c.reads, tc.reads)
		}
	}
}

// With all buffers in use, a Reader reads into that of its own reader, and gets a buffer once there is one.
func TestReadersShareBuffers(t *testing.T) {
	data := pattern(bulk + 2*size)
	p := make([]byte, bulk)
	var others []*Reader
	for range limits.ReadAheads {
		r := &Reader{}
		conn := bytes.NewReader(data)
		for range 2 {
			if _, err := r.Read(conn, p); err != nil {
				t.Fatal(err)
			}
		}
		others = append(others, r)
	}
	if n := taken.Load(); n != limits.ReadAheads {
		t.Fatalf("%d buffers are taken, want %d", n, limits.ReadAheads)
	}
	conn := bytes.NewReader(data)
	late, read := &Reader{}, 0
	next := func() {
		t.Helper()
		n, err := late.Read(conn, p)
		if err != nil || !bytes.Equal(p[:n], data[read:read+n]) {
			t.Fatalf("%d bytes, %v, that are not the next ones", n, err)
		}
		read += n
	}
	next()
	next()
	if left := conn.Len(); left != len(data)-2*bulk {
		t.Errorf("%d bytes are left, want %d: it has read ahead", left, len(data)-2*bulk)
	}
	others[0].Close()
	next()
	if left := conn.Len(); left != len(data)-2*bulk-size {
		t.Errorf("%d bytes are left, want %d: it has not read ahead", left, len(data)-2*bulk-size)
	}
	late.Close()
	for _, r := range others {
		r.Close()
	}
	if n := taken.Load(); n != 0 {
		t.Errorf("%d buffers are taken in the end", n)
	}
}

// A Reader gives its buffer back when its connection fails, or is closed with data in it, and takes no other.
func TestReaderEnds(t *testing.T) {
	r, failure := &Reader{}, errors.New("connection reset")
	p := make([]byte, bulk)
	conn := io.MultiReader(bytes.NewReader(pattern(bulk)), iotest.ErrReader(failure))
	if _, err := r.Read(conn, p); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(conn, p); n != 0 || !errors.Is(err, failure) {
		t.Errorf("%d, %v, want %v", n, err, failure)
	}
	if taken.Load() != 0 {
		t.Fatal("a buffer is taken after the connection has failed")
	}

	here, there := net.Pipe()
	go func() { _, _ = there.Write(pattern(bulk + size)) }()
	r = &Reader{}
	for range 2 {
		if _, err := r.Read(here, p); err != nil {
			t.Fatal(err)
		}
	}
	if taken.Load() != 1 {
		t.Fatal("it does not read ahead")
	}
	_ = here.Close()
	r.Close()
	if taken.Load() != 0 {
		t.Fatal("a buffer is taken after the Reader was closed")
	}
	if n, err := r.Read(here, p); n != 0 || !errors.Is(err, io.ErrClosedPipe) || taken.Load() != 0 {
		t.Errorf("after it was closed: %d, %v", n, err)
	}
}

// Close does not wait for a Read that waits for data, as long as the connection was closed before it.
func TestCloseEndsRead(t *testing.T) {
	here, there := net.Pipe()
	r, ended := &Reader{}, make(chan error)
	p := make([]byte, bulk)
	go func() {
		var err error
		for err == nil {
			_, err = r.Read(here, p)
		}
		ended <- err
	}()
	if _, err := there.Write(pattern(bulk)); err != nil { // now it waits, with a buffer
		t.Fatal(err)
	}
	_ = here.Close()
	r.Close()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the error is %v", err)
	}
	if taken.Load() != 0 {
		t.Error("a buffer is taken in the end")
	}
}
