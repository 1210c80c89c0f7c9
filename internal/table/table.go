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

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

const (
	// maxRows is the number of rows that are written. A gateway has up to 20,000 handlers.
	maxRows = limits.TableRows
	// maxCell is the size to which cells are cut, but for the last of a row: all rows are padded to the longest one. Names
	// of handlers have at most 317 bytes.
	maxCell = limits.CellBytes
)

// Table aligns rows of cells. Nothing is written before Flush, which also returns the first error.
type Table struct {
	tabs *tabwriter.Writer
	rows int
}

// New returns a Table that writes to w.
func New(w io.Writer) *Table { return &Table{tabs: tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)} }

// fits counts a row, and reports whether it is to be written.
func (t *Table) fits() bool {
	t.rows++
	return t.rows <= maxRows
}

// Row adds a row. An empty cell is written as a dash.
func (t *Table) Row(cells ...string) {
	if !t.fits() {
		return
	}
	printed := make([]string, len(cells))
	for i, c := range cells {
		if i < len(cells)-1 {
			c = text.Cut(c, maxCell)
		}
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
		if t.fits() {
			_, _ = fmt.Fprintf(t.tabs, "%s\t%s\n", name, text.Printable(line))
		}
		name = ""
	}
}

// Continue adds a row whose first cells are empty, below the row that it belongs to.
func (t *Table) Continue(empty int, cell string) {
	if !t.fits() {
		return
	}
	_, _ = fmt.Fprintf(t.tabs, "%s%s\n", strings.Repeat("\t", empty), text.Printable(cell))
}

// Flush writes the table, and how many rows it has left out.
func (t *Table) Flush() error {
	if more := t.rows - maxRows; more > 0 {
		_, _ = fmt.Fprintf(t.tabs, "(and %d more rows)\n", more)
	}
	return t.tabs.Flush()
}
