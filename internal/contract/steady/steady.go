// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steady finds in messages of answers what changes from call to call though nothing else does: times,
// durations, identifiers, counters of calls and ports of clients. Callers show messages in conditions, and write these
// again for each new text.
//
// It looks at one text alone, so that all replicas, and each after a restart, make the same of it. That is why a time
// that is always the same is masked, too. Progress stays: "3 of 10", "3/10" and "30 %". So do other small numbers,
// names, addresses, versions and dates without a time.
//
// All functions are safe for concurrent use. They take time in proportion to the length of a text.
package steady

import (
	"cmp"
	"slices"
	"strings"
)

// The placeholders.
const (
	aTime     = "<time>"
	aDuration = "<duration>"
	anID      = "<id>"
	aNumber   = "<number>"
	aPort     = "<port>"
)

// Text returns s with placeholders for what changes. A text that has been masked stays as it is.
func Text(s string) string {
	all := pieces(s)
	if !slices.ContainsFunc(all, func(p piece) bool { return p.as != "" }) {
		return s
	}
	var b strings.Builder
	for _, p := range all {
		b.WriteString(cmp.Or(p.as, p.text))
	}
	return b.String()
}

// Change says how a text differs from another one.
type Change int

// The changes of a text, the least first.
const (
	None     Change = iota
	Progress        // of nothing but "n of m" and percentages
	Maskable        // of nothing but these and what Text masks
	Other
)

// Compare returns what has changed from one text to another.
func Compare(before, now string) Change {
	if before == now {
		return None
	}
	b, n := pieces(before), pieces(now)
	switch {
	case without(b, true) == without(n, true):
		return Progress
	case without(b, false) == without(n, false):
		return Maskable
	}
	return Other
}

// without returns a text without its progress, and unless kept, with placeholders.
func without(all []piece, kept bool) string {
	var b strings.Builder
	for _, p := range all {
		switch {
		case p.done:
			b.WriteByte(0)
		case p.as == "" || kept:
			b.WriteString(p.text)
		default:
			b.WriteString(p.as)
		}
	}
	return b.String()
}
