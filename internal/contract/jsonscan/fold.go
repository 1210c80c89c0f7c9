// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"strings"
	"unicode"
)

// Fold returns a text that is the same for all names that encoding/json takes for one member, and for no others:
// Fold(a) == Fold(b) if and only if strings.EqualFold(a, b).
func Fold(name string) string { return strings.Map(foldRune, name) }

// foldRune returns one rune for all those that differ only in case: the smallest, or its lower case in ASCII, so that
// most names stay as they are.
func foldRune(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	if 'A' <= least && least <= 'Z' {
		return least - 'A' + 'a'
	}
	return least
}
