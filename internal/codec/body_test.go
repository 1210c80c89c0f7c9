// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func bodyOf(parts ...string) Body {
	var b Body
	for _, p := range parts {
		b.segments = append(b.segments, []byte(p))
		b.size += int64(len(p))
	}
	return b
}

func TestBody(t *testing.T) {
	cases := map[string]struct {
		body Body
		want string
	}{
		"Zero":     {Body{}, ""},
		"Empty":    {bodyOf("", ""), ""},
		"One":      {bodyOf("abc"), "abc"},
		"Several":  {bodyOf("", "abc", "", "de", "fghijkl", ""), "abcdefghijkl"},
		"LastFull": {bodyOf("a", "b"), "ab"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.body.Size() != int64(len(tc.want)) {
				t.Errorf("Size is %d, want %d", tc.body.Size(), len(tc.want))
			}
			if got := string(tc.body.Bytes()); got != tc.want {
				t.Errorf("Bytes is %q, want %q", got, tc.want)
			}
			for range 2 { // each reader starts anew
				if err := iotest.TestReader(tc.body.Reader(), []byte(tc.want)); err != nil {
					t.Error(err)
				}
				got, err := io.ReadAll(iotest.OneByteReader(tc.body.Reader()))
				if err != nil || string(got) != tc.want {
					t.Errorf("byte by byte: %q, %v, want %q", got, err, tc.want)
				}
				var out bytes.Buffer
				n, err := tc.body.Reader().WriteTo(&out)
				if err != nil || n != int64(len(tc.want)) || out.String() != tc.want {
					t.Errorf("WriteTo: %d, %v, %q, want %q", n, err, out.String(), tc.want)
				}
			}
		})
	}
}

// limited takes so many bytes and then fails.
type limited struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("full")

func (l *limited) Write(p []byte) (int, error) {
	if len(p) <= l.room {
		l.room -= len(p)
		return l.Buffer.Write(p)
	}
	n, _ := l.Buffer.Write(p[:l.room])
	l.room = 0
	return n, errFull
}

func TestBodyReadThenWriteTo(t *testing.T) {
	r := bodyOf("abc", "def", "ghi").Reader()
	var start [4]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		t.Fatal(err)
	}
	w := &limited{room: 3}
	n, err := r.WriteTo(w)
	if n != 3 || !errors.Is(err, errFull) || w.String() != "efg" {
		t.Fatalf("WriteTo a full writer: %d, %v, %q", n, err, w.String())
	}
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "hi" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}

// Next gives only what is in one piece; the rest is read.
func TestBodyNext(t *testing.T) {
	r := bodyOf("abcdef", "gh", "ijk").Reader()
	for _, step := range []struct {
		reason string
		n      int
		want   string
	}{
		{"none", 0, ""},
		{"a part", 2, "ab"},
		{"to the end of the piece", 4, "cdef"},
		{"more than the piece, with others behind it", 3, ""},
		{"the same piece", 2, "gh"},
		{"more than there is", 4, "ijk"},
		{"the end", 4, ""},
	} {
		if got := r.Next(step.n); string(got) != step.want {
			t.Errorf("%s: %q, want %q", step.reason, got, step.want)
		}
	}
	r = bodyOf("abcdef").Reader()
	if got := r.Next(2); cap(got) != 2 {
		t.Errorf("what is lent has room for %d bytes, want 2: to append to it would change the message", cap(got))
	}
	r = bodyOf("ab", "cd").Reader()
	if got := r.Next(3); got != nil {
		t.Fatalf("%q, which is in two pieces", got)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "abcd" {
		t.Errorf("the rest is %q, %v; Next has moved", rest, err)
	}
}
