// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "strings"

// Nearest returns the name that someone who typed so probably meant, in any letter case: the one with the fewest
// letters added, left out or replaced, at most a third of them. It returns "" if no name is like that. It takes time in
// proportion to the length of typed and of all names.
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

// EditDistance counts the bytes to insert, delete or replace that make a into b.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
