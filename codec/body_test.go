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
				n, err := tc.body.Reader().(io.WriterTo).WriteTo(&out)
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
	n, err := r.(io.WriterTo).WriteTo(w)
	if n != 3 || !errors.Is(err, errFull) || w.String() != "efg" {
		t.Fatalf("WriteTo a full writer: %d, %v, %q", n, err, w.String())
	}
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "hi" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}
