// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutKeepsTheLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		n    int
		want string
	}{
		"shorter":                  {"abc", 8, "abc"},
		"exactly the limit":        {"abcdefgh", 8, "abcdefgh"},
		"one byte more":            {"abcdefghi", 8, "abcde…"},
		"in the middle of a rune":  {"abcdéfghi", 8, "abcd…"},
		"right behind a rune":      {"abcéfghij", 8, "abcé…"},
		"not UTF-8 before the cut": {"a\xffcdefghij", 8, "acde…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Cut(tt.in, tt.n)
			if got != tt.want {
				t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
			}
			if len(got) > tt.n {
				t.Errorf("Cut(%q, %d) has %d bytes", tt.in, tt.n, len(got))
			}
		})
	}
	if got := Cut(strings.Repeat("é", 100), 51); !utf8.ValidString(got) {
		t.Errorf("Cut returned invalid UTF-8: %q", got)
	}
}

func TestPrintableEscapesWhatControlsATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ünïcode 漢字": "plain text, ünïcode 漢字",
		"a\x1b[31mred":           `a\x1b[31mred`,
		"two\nlines\tand a tab":  `two\nlines\tand a tab`,
		"right\u202eto left":     `right\u202eto left`,
		"isolate\u2066d":         `isolate\u2066d`,
		"C1\u009b":               `C1\u009b`,
		"del\x7f":                `del\x7f`,
		"":                       "",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestJoinSaysHowManyItemsItLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		items     []string
		separator string
		n         int
		want      string
	}{
		"none":              {nil, ", ", 2, ""},
		"fewer":             {[]string{"a"}, ", ", 2, "a"},
		"exactly the limit": {[]string{"a", "b"}, ", ", 2, "a, b"},
		"one more":          {[]string{"a", "b", "c"}, ", ", 2, "a, b and 1 more"},
		"several sentences": {[]string{"a", "b", "c", "d"}, "; ", 2, "a; b; and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Join(tt.items, tt.separator, tt.n); got != tt.want {
				t.Errorf("Join = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPluralCounts(t *testing.T) {
	for n, want := range map[int]string{0: "0 handlers", 1: "1 handler", 2: "2 handlers"} {
		if got := Plural(n, "handler"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPrintableLinesKeepsLines(t *testing.T) {
	if got, want := PrintableLines("a\n\x1b[2Jb\n\rc"), "a\n\\x1b[2Jb\n\\rc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
