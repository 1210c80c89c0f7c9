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
