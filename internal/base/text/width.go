// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width returns how many characters of a terminal a text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += widthOf(r)
	}
	return n
}

func widthOf(r rune) int {
	if r < unicode.MaxASCII {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// head returns the bytes of s that take at most n characters of a terminal.
func head(s string, n int) string {
	for i, r := range s {
		if n -= widthOf(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// Shorten returns what fits n characters of a terminal, and ends with … if that is not all.
func Shorten(s string, n int) string {
	if len(s) <= n || Width(s) <= n {
		return s
	}
	return strings.TrimRight(head(s, n-1), " ") + "…"
}

// Fold returns the lines of a text, none of which takes more than n characters of a terminal. n is at least 2.
func Fold(s string, n int) []string {
	var lines []string
	for {
		line := head(s, n)
		if len(line) == len(s) {
			return append(lines, s)
		}
		if i := strings.LastIndexByte(s[:min(len(line)+1, len(s))], ' '); i > 0 {
			line = s[:i]
		}
		lines = append(lines, strings.TrimRight(line, " "))
		s = strings.TrimLeft(s[len(line):], " ")
	}
}
