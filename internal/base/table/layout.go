// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// enough is the width up to which columns are shown in full, and others are left out for that, and enoughText that of
	// the last column, which is often a message.
	enough     = 40
	enoughText = 32
	// narrow is the width below which texts are not folded, and not cut while other columns are whole.
	narrow = 20
	// least is the width below which no column is cut.
	least = 8
)

// names are the titles of columns with names. Readers copy them: they are not cut, even if a line is then longer than
// one of the terminal.
var names = []string{"NAMESPACE", "NAME", "CLUSTER", "HANDLER", "HOOK"}

// layout writes rows in columns.
type layout struct {
	optional []string
	key      string
	below    []string
	folds    bool
	width    int // of the terminal; 0 for none
	colour   func(title, cell string) string
	out      bytes.Buffer
}

// write writes rows that are aligned with each other. Only the first may be titles.
func (l *layout) write(rows []row) {
	titled := rows[0].titles
	columns := widthsOf(rows)
	var below []row
	last := 0 // the width to which the last cell of a row is folded; 0 if it is not
	switch {
	case l.width > 0 && titled:
		rows, columns, below = l.leaveOut(rows, columns)
		l.narrowDown(columns, rows[0].cells)
		if l.folds {
			last = max(columns[len(columns)-1], narrow)
		}
		l.cut(rows, columns)
	case l.width > 0:
		if room := l.width - sum(columns[:len(columns)-1]); room >= narrow {
			last = room
		}
	}
	for _, r := range rows {
		if r.apart {
			l.out.WriteByte('\n')
		}
		l.row(r, rows[0], columns, last)
	}
	if len(below) > 1 {
		second := layout{folds: true, width: l.width, colour: l.colour}
		second.write(below)
		_, _ = second.out.WriteTo(&l.out) // a bytes.Buffer takes all
	}
}

// row writes a row, and its last cell in lines of a width, unless that is 0.
func (l *layout) row(r, first row, columns []int, last int) {
	for i, cell := range r.cells {
		title := r.cells[0]
		if first.titles && i < len(first.cells) {
			title = first.cells[i]
		}
		if i < len(r.cells)-1 {
			l.cell(title, cell, r.titles)
			l.space(columns[i] - text.Width(cell) + len(gap))
			continue
		}
		lines := []string{cell}
		if last > 0 && len(r.cells) > 1 {
			lines = text.Fold(cell, last)
		}
		for j, line := range lines {
			if j > 0 {
				l.out.WriteByte('\n')
				l.space(sum(columns[:i]))
			}
			l.cell(title, line, r.titles)
		}
	}
	l.out.WriteByte('\n')
}

func (l *layout) space(n int) { l.out.WriteString(strings.Repeat(" ", n)) }

func (l *layout) cell(title, cell string, isTitle bool) {
	code := ""
	if l.colour != nil && !isTitle && cell != title {
		code = l.colour(title, cell)
	}
	if code == "" {
		l.out.WriteString(cell)
		return
	}
	l.out.WriteString("\x1b[" + code + "m" + cell + "\x1b[0m")
}

// widthsOf returns the widths of columns. A row that ends before the last column may be longer than that.
func widthsOf(rows []row) []int {
	n := 0
	for _, r := range rows {
		n = max(n, len(r.cells))
	}
	columns := make([]int, n)
	for _, r := range rows {
		for i, cell := range r.cells {
			if i < len(r.cells)-1 || i == n-1 {
				columns[i] = max(columns[i], text.Width(cell))
			}
		}
	}
	return columns
}

// sum returns the width of columns with the gaps behind them.
func sum(columns []int) int {
	n := 0
	for _, c := range columns {
		n += c + len(gap)
	}
	return n
}

// total returns the width of lines if no column is wider than most.
func total(columns []int, most int) int {
	n := -len(gap)
	for _, c := range columns {
		n += min(c, most) + len(gap)
	}
	return n
}

// leaveOut returns rows without the optional columns that the terminal has no room for, and the rows below with those
// columns that are not to be lost.
func (l *layout) leaveOut(rows []row, columns []int) (shown []row, widths []int, below []row) {
	shown = slices.Clone(rows)
	var moved []string
	for _, title := range l.optional {
		if l.fits(columns) {
			break
		}
		i := slices.Index(shown[0].cells, title)
		if i < 0 {
			continue
		}
		if slices.Contains(l.below, title) {
			moved = append(moved, title)
		}
		columns = slices.Delete(columns, i, i+1)
		for j, r := range shown {
			if i < len(r.cells) {
				shown[j].cells = slices.Delete(slices.Clone(r.cells), i, i+1)
			}
		}
	}
	return shown, columns, l.moved(rows, moved)
}

// fits reports whether columns fit the terminal. Where none can be moved below, long cells may be cut for it.
func (l *layout) fits(columns []int) bool {
	if len(l.below) > 0 {
		return total(columns, l.width) <= l.width
	}
	last := len(columns) - 1
	return total(columns[:last], enough)+len(gap)+min(columns[last], enoughText) <= l.width
}

// moved returns the rows of the table below, after an empty line: the titles, and those rows that have a cell there.
func (l *layout) moved(rows []row, titles []string) []row {
	at := []int{slices.Index(rows[0].cells, l.key)}
	for i, title := range rows[0].cells {
		if slices.Contains(titles, title) {
			at = append(at, i)
		}
	}
	var below []row
	for _, r := range rows {
		of := row{titles: r.titles, apart: r.titles}
		empty := true
		for _, i := range at {
			if i < 0 || i >= len(r.cells) {
				continue
			}
			empty = empty && (i == at[0] || r.cells[i] == "-")
			of.cells = append(of.cells, r.cells[i])
		}
		if !empty {
			below = append(below, of)
		}
	}
	return below
}

// narrowDown reduces the widths of columns, but for those of names, until lines fit the terminal: first that of the
// last one, and then those of the widest.
func (l *layout) narrowDown(columns []int, titles []string) {
	last := len(columns) - 1
	cut := func(i, most int) int {
		if i < len(titles) && slices.Contains(names, titles[i]) {
			return columns[i]
		}
		return min(columns[i], most)
	}
	line := func(most int) int {
		n := -len(gap)
		for i := range columns {
			n += cut(i, most) + len(gap)
		}
		return n
	}
	columns[last] = cut(last, max(l.width-sum(columns[:last]), narrow))
	most := l.width
	for most > least && line(most) > l.width {
		most--
	}
	for i := range columns {
		columns[i] = cut(i, most)
	}
}

// cut cuts cells to the widths of their columns, but for the last one if that is folded. The last cell of a row that
// ends early may be longer than its column.
func (l *layout) cut(rows []row, columns []int) {
	last := len(columns) - 1
	for j := range rows {
		of := slices.Clone(rows[j].cells)
		for i := range of {
			switch {
			case i < last && i == len(of)-1:
				of[i] = text.Shorten(of[i], l.width-sum(columns[:i]))
			case i < last || !l.folds:
				of[i] = text.Shorten(of[i], columns[i])
			}
		}
		rows[j].cells = of
	}
}
