// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"BeforeClusterCreate", "BeforeClusterUpgrade", "AfterClusterUpgrade", "Discovery"}
	for typed, want := range map[string]string{
		"BeforeClusterCreate":  "BeforeClusterCreate",
		"beforeclustercreat":   "BeforeClusterCreate",
		"beforeclusterscreate": "BeforeClusterCreate",
		"discover":             "Discovery",
		"dicsovery":            "Discovery",
		"xxxcovery":            "Discovery", // three of nine
		"xxxxovery":            "",
		"generate":             "",
		"":                     "",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
	if got := Nearest("abcdef", []string{"abcdxx", "abcdex"}); got != "abcdex" {
		t.Errorf("got %q, want the nearest one", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"version", "version", 0}, {"version", "verson", 1}, {"version", "versiom", 1},
		{"status", "sttaus", 1}, {"status", "tsatsu", 2}, {"abc", "cab", 2}, {"abc", "cba", 2}, {"ab", "ba", 1},
	} {
		if got := EditDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
