// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/table"
)

// TestOnlyNarrowTablesNameAFlag names the columns that a terminal has no room for, and none where the table has all.
func TestOnlyNarrowTablesNameAFlag(t *testing.T) {
	const note = "-o wide also shows POLICY."
	for name, tt := range map[string]struct{ terminal, wide, noted bool }{
		"terminal": {true, false, true}, "wide": {true, true, false}, "pipe": {false, false, false},
	} {
		var b strings.Builder
		s := &Screen{Out: &b, Terminal: tt.terminal, Full: "-o wide"}
		err := s.Write(tt.wide, func(w io.Writer) error {
			tab := table.New(w)
			tab.Columns("NAME", "POLICY")
			tab.Optional("POLICY")
			tab.Row(strings.Repeat("n", defaultWidth), "strict")
			return tab.Flush()
		})
		if shown := fmt.Sprint(strings.Contains(b.String(), note), !strings.Contains(b.String(), "strict")); err != nil ||
			shown != fmt.Sprint(tt.noted, tt.noted) {
			t.Errorf("%s: %v, got\n%s", name, err, b.String())
		}
	}
}

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
