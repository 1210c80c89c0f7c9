// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "strings"

// Nearest returns the name that someone who typed so probably meant, in any letter case: the one with the fewest
// letters added, left out, replaced or swapped, at most a third of them. It returns "" if no name is like that. It
// takes time in proportion to the length of typed and of all names.
func Nearest(typed string, names []string) string {
	typed = strings.ToLower(typed)
	best, least := "", len(typed)/3+1
	for _, name := range names {
		if more := len(name) - len(typed); more >= least || -more >= least {
			continue
		}
		if d := EditDistance(typed, strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// EditDistance counts the bytes to insert, delete, replace or swap with their neighbour that make a into b.
func EditDistance(a, b string) int {
	n := len(b) + 1
	rows := make([]int, 3*n)
	before, row, next := rows[:n], rows[n:2*n], rows[2*n:]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			d := row[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			next[j+1] = d
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
