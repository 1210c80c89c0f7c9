// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text shortens, escapes and joins texts that come from outside before they reach a log, a condition or a
// terminal. Its functions are pure.
package text

import (
	"fmt"
	"strings"
	"unicode"
)

// ellipsis marks where Cut has shortened a text.
const ellipsis = "…"

// Cut returns s, shortened to at most n bytes. A shortened text is valid UTF-8 and ends with an ellipsis; n must leave
// room for one.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(ellipsis)], "") + ellipsis
}

// Printable returns s with every character that could control a terminal, or change the direction of text in it,
// replaced by its Go escape.
func Printable(s string) string {
	if !strings.ContainsFunc(s, IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if IsControl(r) {
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// PrintableLines returns what Printable does, and keeps the ends of lines.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// IsControl reports whether r is a control character or changes the direction of text.
func IsControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Join joins at most n items, which must be at least 1, and says how many it left out: "a, b and 3 more" with the
// separator ", ", and "a; b; and 3 more" with "; ".
func Join(items []string, separator string, n int) string {
	more := len(items) - n
	if more <= 0 {
		return strings.Join(items, separator)
	}
	joined := strings.Join(items[:n], separator)
	if separator == ", " {
		return fmt.Sprintf("%s and %d more", joined, more)
	}
	return fmt.Sprintf("%s%sand %d more", joined, separator, more)
}

// Plural returns a number of things: "1 handler", "2 handlers".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
