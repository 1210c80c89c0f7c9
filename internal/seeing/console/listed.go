// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/internal/base/status"
)

// The numbers of rows in the lists of the first page. A page with one list has up to maxRows.
const (
	firstRows = 10 // of those that need attention, and of extensions
	wellRows  = 3  // of others, unless there are as many as fewRows in all
	fewRows   = 5
)

// listed is a list with the worst rows first.
type listed[T any] struct {
	Word   string // what one is called
	Words  string // what several are called, which ?show= takes
	Rows   []*T
	Wrong  int          // how many of all need attention
	Worst  status.State // of all
	More   int          // those beyond the rows
	Missed int          // those that the gateway had no room for
}

// Missing is the number of those that the page does not have.
func (l listed[T]) Missing() int { return l.More + l.Missed }

// list returns a list whose rows have states. room returns the number of rows of a list of so many, of which some need
// attention.
func list[T any](
	word, words string, all []T, missed int, stateOf func(*T) status.State, room func(all, wrong int) int,
) listed[T] {
	type row struct {
		of    *T
		state status.State
	}
	rows, l := make([]row, len(all)), listed[T]{Word: word, Words: words, Missed: missed}
	for i := range all {
		rows[i] = row{&all[i], stateOf(&all[i])}
		if needsAttention(rows[i].state) {
			l.Wrong++
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.state.Severity(), b.state.Severity()) })
	if len(rows) > 0 {
		l.Worst = rows[0].state
	}
	n := min(room(len(rows), l.Wrong), len(rows))
	for i := range n {
		l.Rows = append(l.Rows, rows[i].of)
	}
	l.More = len(rows) - n
	return l
}

// roomOfOne is the room of the only list of a page, and roomOfExtensions and roomOfOthers that of a list among others.
func roomOfOne(int, int) int        { return maxRows }
func roomOfExtensions(int, int) int { return firstRows }

func roomOfOthers(all, wrong int) int {
	if all <= fewRows {
		return all
	}
	return min(max(wrong, wellRows), firstRows)
}

func stateOfExtension(x *status.Extension) status.State { return x.State }
func stateOfHandler(h *status.Handler) status.State     { return h.State }
func stateOfVerdict[T any](row *T) status.State         { return verdictOf(row).State }
