// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table writes aligned tables for people. Cells may hold whatever a server has sent: no cell can break a line
// or control the terminal. On a Terminal, tables fit its width. A Table belongs to one goroutine.
package table

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// maxRows is the number of rows that are written. A gateway has up to 20,000 handlers.
	maxRows = limits.TableRows
	// maxCell is the size to which cells are cut, but for the last of a row: all rows are padded to the longest one. Names
	// of handlers have at most 317 bytes.
	maxCell = limits.CellBytes
	// gap is what separates columns.
	gap = "   "
)

// Terminal is a writer to a terminal. The tables that are written to it have its colours, and fit its width.
type Terminal struct {
	io.Writer
	// Width is the number of characters in a line. Lines are as long as they are if it is 0.
	Width int
	// Full is the flag that shows all columns, such as "-o wide". A line below a table names it, and the columns that a
	// terminal has no room for. It is empty if there is no such flag.
	Full string
	// Colour returns the SGR code of a cell, or "". title is the title of its column; where columns have none, it is the
	// first cell of the row. Colour may be nil.
	Colour func(title, cell string) string
}

// Table aligns rows of cells. Nothing is written before Flush, which also returns the first error.
type Table struct {
	w        io.Writer
	rows     []row
	all      int // the rows, with those that are left out
	optional []string
	key      string
	below    []string
	folds    bool
}

// row is a row of printable cells.
type row struct {
	cells  []string
	titles bool
	apart  bool // an empty line is in front of it
}

// New returns a Table that writes to w, which may be a *Terminal.
func New(w io.Writer) *Table { return &Table{w: w} }

// Optional names the columns that a terminal without room for them does not show, the first one to go first, but after
// those that have no cell. Without them, or if that is not enough, long cells are cut.
func (t *Table) Optional(titles ...string) { t.optional = titles }

// Below names the optional columns that a terminal without room for them shows in a second table, below. Its rows begin
// with the cell of the column key. Tables with such columns leave out or move columns until no cell is cut.
func (t *Table) Below(key string, titles ...string) { t.key, t.below = key, titles }

// Fold makes the last column continue on further lines of a terminal in place of being cut. A column MESSAGE, and rows
// without titles, whose first cell is the name of the second, always do so.
func (t *Table) Fold() { t.folds = true }

// Columns adds the titles of the columns of the rows that follow.
func (t *Table) Columns(titles ...string) { t.add(row{cells: titles, titles: true}) }

// Header is Columns after an empty line.
func (t *Table) Header(titles ...string) { t.add(row{cells: titles, titles: true, apart: true}) }

// Section adds an empty line and a row.
func (t *Table) Section(cells ...string) { t.add(row{cells: cells, apart: true}) }

// Row adds a row. An empty cell is written as a dash.
func (t *Table) Row(cells ...string) { t.add(row{cells: cells}) }

func (t *Table) add(r row) {
	if !t.fits() {
		return
	}
	printed := make([]string, len(r.cells))
	for i, c := range r.cells {
		if i < len(r.cells)-1 {
			c = text.Cut(c, maxCell)
		}
		if printed[i] = text.Printable(c); printed[i] == "" {
			printed[i] = "-"
		}
	}
	r.cells = printed
	t.rows = append(t.rows, r)
}

// fits counts a row, and reports whether it is to be written.
func (t *Table) fits() bool {
	t.all++
	return t.all <= maxRows
}

// Lines adds a name and a text of several lines, with the name in front of the first.
func (t *Table) Lines(name, lines string) {
	for line := range strings.SplitSeq(strings.TrimRight(lines, "\n"), "\n") {
		if t.fits() {
			t.rows = append(t.rows, row{cells: []string{name, text.Printable(line)}})
		}
		name = ""
	}
}

// Continue adds a row whose first cells are empty, below the row that it belongs to.
func (t *Table) Continue(empty int, cell string) {
	if t.fits() {
		t.rows = append(t.rows, row{cells: append(make([]string, empty), text.Printable(cell))})
	}
}

// Flush writes the table, and how many rows it has left out.
func (t *Table) Flush() error {
	l := layout{optional: t.optional, key: t.key, below: t.below, folds: t.folds}
	if terminal, ok := t.w.(*Terminal); ok {
		l.width, l.full, l.colour = terminal.Width, terminal.Full, terminal.Colour
	}
	for rest := t.rows; len(rest) > 0; {
		n := 1
		for n < len(rest) && !rest[n].titles {
			n++
		}
		l.write(rest[:n])
		rest = rest[n:]
	}
	if more := t.all - maxRows; more > 0 {
		_, _ = fmt.Fprintf(&l.out, "(and %d more rows)\n", more)
	}
	_, err := l.out.WriteTo(t.w)
	return err
}
