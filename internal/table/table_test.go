// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
