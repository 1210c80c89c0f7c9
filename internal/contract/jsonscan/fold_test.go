// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"strings"
	"testing"
	"unicode"
)

// TestFold holds that two characters fold to one if and only if encoding/json, which uses bytes.EqualFold, takes them
// for one.
func TestFold(t *testing.T) {
	byFold := map[string]string{}
	for r := range rune(0x20000) { // no letter with a case comes after
		one := string(r)
		other := string(unicode.SimpleFold(r))
		if Fold(one) != Fold(other) {
			t.Errorf("%q and %q are not the same", one, other)
		}
		if first, ok := byFold[Fold(one)]; ok && !strings.EqualFold(first, one) {
			t.Errorf("%q and %q are the same", first, one)
		}
		byFold[Fold(one)] = one
	}
	for name, want := range map[string]string{"retryAfterSeconds": "retryafterseconds", "\u212aind": "kind", "ſtatus": "status", "": ""} {
		if got := Fold(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
