// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBounds adds files at the limit, one beyond, and beyond all files together.
func TestBounds(t *testing.T) {
	var a Archive
	a.Add("at", strings.Repeat("x", MaxFile))
	a.Add("beyond", strings.Repeat("x", MaxFile+1))
	for i := range MaxTotal/MaxFile - 2 {
		a.Add(fmt.Sprintf("more-%d", i), strings.Repeat("x", MaxFile))
	}
	a.Add("none", "x")
	var out bytes.Buffer
	entries, err := a.Write(&out, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	notes, total := map[string]string{}, 0
	for _, e := range entries {
		notes[e.Name] = e.Note
		total += e.Size
	}
	if total != MaxTotal {
		t.Errorf("%d bytes, want %d", total, MaxTotal)
	}
	for name, want := range map[string]string{
		"at": "", "beyond": "its first 8388608 of 8388609 bytes", "more-5": "", "none": "its first 0 of 1 bytes",
	} {
		if notes[name] != want {
			t.Errorf("%s: note %q, want %q", name, notes[name], want)
		}
	}
}

// TestSecret checks which texts are removed, wherever they are and however they are written.
func TestSecret(t *testing.T) {
	for name, tt := range map[string]struct{ secret, content, want string }{
		"Shortest":   {"123456", "a 123456 b", "a [removed] b"},
		"TooShort":   {"12345", "a 12345 b", "a 12345 b"},
		"Quoted":     {`a"b\c d`, `{"x":"a\"b\\c d"}`, `{"x":"[removed]"}`},
		"Lines":      {"line-one\nline-two\n", "  line-two\n  line-one", "  [removed]\n  [removed]"},
		"LongestOne": {"longer-secret\nlonger", "longer-secret", "[removed]"},
	} {
		t.Run(name, func(t *testing.T) {
			var a Archive
			a.Add("f", tt.content)
			a.Secret(tt.secret)
			if got := a.replacer().Replace(a.files[0].content); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
