// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzText checks that a text of any form is read to its end, with the same result each time, and stays text.
func FuzzText(f *testing.F) {
	for _, file := range []string{"secrets.txt", "ordinary.txt"} {
		corpus, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for text := range strings.SplitSeq(string(corpus), "\n== ") {
			f.Add(text)
			f.Add(jsoned(text))
			f.Add(b64(text))
		}
	}
	for _, text := range []string{`{"a":"b`, `[{"a`, `{"a":`, `{"a":1,`, `["\`, `{"password":tru`, `[[[`, "%", "a: &a [*a]", "password: |\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if once != Text(text) {
			t.Errorf("%q has two results", text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(once) {
			t.Errorf("%q became %q", text, once)
		}
		Value("/a/token", text, 100)
	})
}
