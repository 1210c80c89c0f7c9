// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/text"
)

func TestColumnsAreAlignedAndCellsCannotBreakThem(t *testing.T) {
	var b strings.Builder
	tab := New(&b)
	tab.Row("NAME", "VALUE")
	tab.Row("a longer name", "")
	tab.Row("tab\there", "new\nline \x1b[31m")
	tab.Lines("text", "one\ntwo\t2\n\n")
	tab.Continue(1, "three\r")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `NAME            VALUE
a longer name   -
tab\there       new\nline \x1b[31m
text            one
                two\t2
                three\r
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFlushReturnsTheErrorOfAnyRow(t *testing.T) {
	tab := New(full{})
	tab.Row("a")
	tab.Header("b")
	if err := tab.Flush(); err == nil || err.Error() != "disk full" {
		t.Errorf("got %v, want disk full", err)
	}
}

// TestTablesAreBounded has a cell to which all rows would be padded, and more rows than a reader wants.
func TestTablesAreBounded(t *testing.T) {
	var b strings.Builder
	tab := New(&b)
	for range 4 {
		tab.Row(strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), "last")
	}
	for range maxRows / 2 {
		tab.Row("a", "b", "c")
		tab.Continue(2, "d")
	}
	tab.Lines("text", strings.Repeat("\n", 99)+"e")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != maxRows+1 || !strings.HasSuffix(b.String(), "\n(and 104 more rows)\n") {
		t.Errorf("%d lines, the last is %s", n, b.String()[b.Len()-40:])
	}
	if b.Len() > 3*maxRows*maxCell {
		t.Errorf("%d rows have %d bytes", maxRows, b.Len())
	}
}

// TestTablesFitATerminal leaves out columns, cuts cells, and folds texts, but changes nothing elsewhere.
func TestTablesFitATerminal(t *testing.T) {
	list := func(tab *Table) {
		tab.Columns("NAME", "HOOK", "CALLS", "P99", "MESSAGE")
		tab.Optional("P99", "CALLS", "HOOK")
		tab.Row("gate.acme", "BeforeClusterUpgrade", "12", "1.2s", "cannot connect: connection refused")
		tab.Row("名前", "BeforeClusterCreate", "0", "", "")
	}
	waiting := func(tab *Table) {
		tab.Columns("CLUSTER", "HOOK", "SINCE", "MESSAGE")
		tab.Optional("MESSAGE", "SINCE", "HOOK")
		tab.Below("CLUSTER", "HOOK", "MESSAGE")
		tab.Row("prod-1", "BeforeClusterUpgrade", "2m", "the backup has not ended")
		tab.Row("prod-2", "BeforeClusterCreate", "5s", "")
	}
	about := func(tab *Table) {
		tab.Row("Name:", "acme")
		tab.Row("Message:", "cannot connect to "+strings.Repeat("x", 30)+": connection refused")
		tab.Section("Other:", "short")
	}
	names := func(tab *Table) {
		tab.Columns("NAME", "AGE", "MESSAGE")
		tab.Optional("AGE")
		tab.Row("an-extension-of-the-platform", "5s", "cannot connect: connection refused again")
		tab.Row("(none of the others)")
	}
	values := func(tab *Table) {
		tab.Columns("NAME", "WAS", "NOW")
		tab.Row("acme", strings.Repeat("x", 30), strings.Repeat("y", 30))
	}
	notes := func(tab *Table) {
		tab.Fold()
		tab.Header("NAME", "NOTE")
		tab.Row("acme", "the conversion loses spec.a, spec.b and more")
	}
	for name, tt := range map[string]struct {
		width int
		fill  func(tab *Table)
		want  string
	}{
		"all": {0, list, "" +
			"NAME        HOOK                   CALLS   P99    MESSAGE\n" +
			"gate.acme   BeforeClusterUpgrade   12      1.2s   cannot connect: connection refused\n" +
			"名前        BeforeClusterCreate    0       -      -\n"},
		"without columns": {80, list, "" +
			"NAME        HOOK                   CALLS   MESSAGE\n" +
			"gate.acme   BeforeClusterUpgrade   12      cannot connect: connection refused\n" +
			"名前        BeforeClusterCreate    0       -\n"},
		"nothing below": {80, waiting, "" +
			"CLUSTER   HOOK                   SINCE   MESSAGE\n" +
			"prod-1    BeforeClusterUpgrade   2m      the backup has not ended\n" +
			"prod-2    BeforeClusterCreate    5s      -\n"},
		"text below": {50, waiting, "" +
			"CLUSTER   HOOK                   SINCE\n" +
			"prod-1    BeforeClusterUpgrade   2m\n" +
			"prod-2    BeforeClusterCreate    5s\n" +
			"\n" +
			"CLUSTER   MESSAGE\n" +
			"prod-1    the backup has not ended\n"},
		"text below, a column left out": {30, waiting, "" +
			"CLUSTER   HOOK\n" +
			"prod-1    BeforeClusterUpgrade\n" +
			"prod-2    BeforeClusterCreate\n" +
			"\n" +
			"CLUSTER   MESSAGE\n" +
			"prod-1    the backup has not\n" +
			"          ended\n"},
		"messages are folded": {40, list, "" +
			"NAME        MESSAGE\n" +
			"gate.acme   cannot connect: connection\n" +
			"            refused\n" +
			"名前        -\n"},
		"names are whole": {18, list, "" +
			"NAME        MESSAGE\n" +
			"gate.acme   cannot connect:\n" +
			"            connection refused\n" +
			"名前        -\n"},
		"names before messages": {60, names, "" +
			"NAME                           MESSAGE\n" +
			"an-extension-of-the-platform   cannot connect: connection\n" +
			"                               refused again\n" +
			"(none of the others)\n"},
		"cut": {40, values, "" +
			"NAME   WAS               NOW\n" +
			"acme   " + strings.Repeat("x", 14) + "…   " + strings.Repeat("y", 14) + "…\n"},
		"a row that ends early": {40, func(tab *Table) { tab.Columns("A", "B"); tab.Row("(no handlers)") }, "" +
			"A   B\n" +
			"(no handlers)\n"},
		"folded": {40, about, "" +
			"Name:      acme\n" +
			"Message:   cannot connect to\n" +
			"           " + strings.Repeat("x", 29) + "\n" +
			"           x: connection refused\n" +
			"\n" +
			"Other:     short\n"},
		"notes": {40, notes, "" +
			"\n" +
			"NAME   NOTE\n" +
			"acme   the conversion loses spec.a,\n" +
			"       spec.b and more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			tab := New(&Terminal{Writer: &b, Width: tt.width})
			tt.fill(tab)
			if err := tab.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			for line := range strings.Lines(b.String()) {
				if n := text.Width(strings.TrimSuffix(line, "\n")); tt.width > 20 && n > tt.width {
					t.Errorf("%d characters: %s", n, line)
				}
			}
		})
	}
}

// TestTablesSayWhatTheyLeaveOut leaves out columns without a cell first, and names those that have some.
func TestTablesSayWhatTheyLeaveOut(t *testing.T) {
	for name, tt := range map[string]struct {
		width int
		full  string
		want  string
	}{
		"all": {80, "-o wide", "" +
			"NAME   TIMEOUT   ORDER   POLICY   MESSAGE\n" +
			"acme   10s       -       strict   the backup has not ended\n" +
			"gate   5s        -       -        -\n"},
		"without the empty one": {55, "-o wide", "" +
			"NAME   TIMEOUT   POLICY   MESSAGE\n" +
			"acme   10s       strict   the backup has not ended\n" +
			"gate   5s        -        -\n"},
		"fewer": {20, "-o wide", "" +
			"NAME   POLICY\n" +
			"acme   strict\n" +
			"gate   -\n" +
			"-o wide also shows\n" +
			"TIMEOUT.\n" +
			"\n" +
			"NAME   MESSAGE\n" +
			"acme   the backup has not\n" +
			"       ended\n"},
		"no flag": {20, "", "" +
			"NAME   POLICY\n" +
			"acme   strict\n" +
			"gate   -\n" +
			"\n" +
			"NAME   MESSAGE\n" +
			"acme   the backup has not\n" +
			"       ended\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			tab := New(&Terminal{Writer: &b, Width: tt.width, Full: tt.full})
			tab.Columns("NAME", "TIMEOUT", "ORDER", "POLICY", "MESSAGE")
			tab.Optional("MESSAGE", "TIMEOUT", "POLICY", "ORDER")
			tab.Below("NAME", "MESSAGE")
			tab.Row("acme", "10s", "", "strict", "the backup has not ended")
			tab.Row("gate", "5s", "", "", "")
			if err := tab.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestColoursTakeNoRoom colours cells by the titles of their columns, or by the names in front of them.
func TestColoursTakeNoRoom(t *testing.T) {
	var b strings.Builder
	tab := New(&Terminal{Writer: &b, Colour: func(title, cell string) string {
		if strings.HasPrefix(strings.ToLower(title), "state") && cell == "Down" {
			return "31"
		}
		return ""
	}})
	tab.Row("State:", "Down")
	tab.Header("NAME", "STATE", "SINCE")
	tab.Row("Down", "Down", "5s")
	tab.Row("a", "Working", "Down")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "State:   \x1b[31mDown\x1b[0m\n\n" +
		"NAME   STATE     SINCE\n" +
		"Down   \x1b[31mDown\x1b[0m      5s\n" +
		"a      Working   Down\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
