// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
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
			}
		})
	}
}
