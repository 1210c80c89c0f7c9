// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"fmt"
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

// message is the title of a last column that continues on further lines in every table: a reader needs all of it.
const message = "MESSAGE"

// layout writes rows in columns.
type layout struct {
	optional []string
	key      string
	below    []string
	folds    bool
	width    int    // of the terminal; 0 for none
	full     string // the flag that shows all columns; empty if none does
	colour   func(title, cell string) string
	out      bytes.Buffer
}

// write writes rows that are aligned with each other. Only the first may be titles.
func (l *layout) write(rows []row) {
	titled := rows[0].titles
	columns := widthsOf(rows)
	var below []row
	var missing []string
	last := 0 // the width to which the last cell of a row is folded; 0 if it is not
	switch {
	case l.width > 0 && titled:
		rows, columns, below, missing = l.leaveOut(rows, columns)
		l.narrowDown(columns, rows[0].cells)
		l.folds = l.folds || rows[0].cells[len(rows[0].cells)-1] == message
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
	if l.full != "" && len(missing) > 0 {
		note := fmt.Sprintf("%s also shows %s.", l.full, strings.Join(missing, ", "))
		l.out.WriteString(strings.Join(text.Fold(note, l.width), "\n") + "\n")
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

// leaveOut returns rows without the columns that the terminal has no room for: first those without a cell, the last one
// first, and then the optional ones. It also returns the rows below, and the titles of the columns that have cells and
// are nowhere.
func (l *layout) leaveOut(rows []row, columns []int) (shown []row, widths []int, below []row, missing []string) {
	shown = slices.Clone(rows)
	titles := rows[0].cells
	empty := l.empty(rows)
	var out []string
	for _, title := range slices.Concat(empty, l.optional) {
		if l.fits(columns, shown[0].cells) {
			break
		}
		i := slices.Index(shown[0].cells, title)
		if i < 0 {
			continue
		}
		if !slices.Contains(empty, title) {
			out = append(out, title)
		}
		columns = slices.Delete(columns, i, i+1)
		for j, r := range shown {
			if i < len(r.cells) {
				shown[j].cells = slices.Delete(slices.Clone(r.cells), i, i+1)
			}
		}
	}
	isBelow := func(title string) bool { return slices.Contains(l.below, title) }
	for _, title := range titles {
		if slices.Contains(out, title) && !isBelow(title) {
			missing = append(missing, title)
		}
	}
	return shown, columns, l.moved(rows, slices.DeleteFunc(out, func(s string) bool { return !isBelow(s) })), missing
}

// empty returns the titles of the columns but the first whose cells all are dashes, the last one first.
func (l *layout) empty(rows []row) (titles []string) {
	for i, title := range rows[0].cells {
		has := func(r row) bool { return i < len(r.cells) && r.cells[i] != "-" }
		if i > 0 && title != l.key && !slices.ContainsFunc(rows[1:], has) {
			titles = append(titles, title)
		}
	}
	slices.Reverse(titles)
	return titles
}

// fits reports whether columns fit the terminal. Where none can be moved below, long cells but names may be cut for it.
func (l *layout) fits(columns []int, titles []string) bool {
	n := -len(gap)
	for i, width := range columns {
		most := enough
		switch {
		case len(l.below) > 0 || i < len(titles) && slices.Contains(names, titles[i]):
			most = width
		case i == len(columns)-1:
			most = enoughText
		}
		n += min(width, most) + len(gap)
	}
	return n <= l.width
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
