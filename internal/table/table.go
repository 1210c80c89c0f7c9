// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table writes aligned tables for people. Cells may hold whatever a server has sent: no cell can break a line
// or control the terminal. A Table belongs to one goroutine.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hookgate/hookgate/internal/text"
)

// Table aligns rows of cells. Nothing is written before Flush, which also returns the first error.
type Table struct{ tabs *tabwriter.Writer }

// New returns a Table that writes to w.
func New(w io.Writer) *Table { return &Table{tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)} }

// Row adds a row. An empty cell is written as a dash.
func (t *Table) Row(cells ...string) {
	printed := make([]string, len(cells))
	for i, c := range cells {
		if printed[i] = text.Printable(c); printed[i] == "" {
			printed[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(t.tabs, strings.Join(printed, "\t")) // Flush returns the error
}

// Header adds an empty line and a row.
func (t *Table) Header(cells ...string) {
	_, _ = fmt.Fprintln(t.tabs)
	t.Row(cells...)
}

// Lines adds a name and a text of several lines, with the name in front of the first.
func (t *Table) Lines(name, lines string) {
	for line := range strings.SplitSeq(strings.TrimRight(lines, "\n"), "\n") {
		_, _ = fmt.Fprintf(t.tabs, "%s\t%s\n", name, text.Printable(line))
		name = ""
	}
}

// Continue adds a row whose first cells are empty, below the row that it belongs to.
func (t *Table) Continue(empty int, cell string) {
	_, _ = fmt.Fprintf(t.tabs, "%s%s\n", strings.Repeat("\t", empty), text.Printable(cell))
}

// Flush writes the table.
func (t *Table) Flush() error { return t.tabs.Flush() }
