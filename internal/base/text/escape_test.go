// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// What could mislead a reader of a terminal is escaped, and the text that a parser reads is the same.
func TestEscape(t *testing.T) {
	const all = "a\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061cb\u007f\u0085\u009bc é €\t😀"
	var b bytes.Buffer
	e := json.NewEncoder(EscapingWriter(&b))
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]string{all: all}); err != nil {
		t.Fatal(err)
	}
	const want = `a\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061cb\u007f\u0085\u009bc é €\t😀`
	if strings.Count(b.String(), want) != 2 {
		t.Errorf("got %q", b.String())
	}
	var read map[string]string
	if err := json.Unmarshal(b.Bytes(), &read); err != nil || read[all] != all {
		t.Errorf("reads as %q, %v", read, err)
	}
	if plain := []byte("{\n\t\"a\": \"é\"\r\n}"); string(Escape(plain)) != string(plain) {
		t.Errorf("harmless text became %q", Escape(plain))
	}
}
