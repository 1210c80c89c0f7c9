// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import "testing"

// TestColours has what is coloured, and what only looks like it.
func TestColours(t *testing.T) {
	for _, tt := range []struct{ title, cell, want string }{
		{"STATE", "Up", green},
		{"STATE", "Down", red},
		{"STATE", "Else", ""},
		{"SINCE", "Down", ""},
		{"State:", "Down for 5s", red},
		{"READY", "False", red},
		{"READY", "True", ""},
		{"Ready:", "False, NotAccepted", red},
		{"FAILED", "0", ""},
		{"FAILED", "-", ""},
		{"FAILED", "3", red},
		{"CALLS", "3", ""},
	} {
		if got := colour(tt.title, tt.cell); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.title, tt.cell, got, tt.want)
		}
	}
}
