// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit is a row of docs/limits.md.
type Limit struct {
	Per    string // what each has this limit by itself
	Name   string // what is limited
	Value  string
	Beyond string // what a user sees beyond it
	// Set is the flag or the field that changes it, or "" if it is fixed.
	Set string
	// Metric are the metrics that show it, or "".
	Metric string
}

// Idea is one of the three ideas that limits follow: how much, how many and how long.
type Idea struct {
	Name, About string
	Limits      []Limit
}

// Table returns all limits.
func Table() []Idea {
	return []Idea{
		{
			"How much",
			"Memory is reserved from one budget before it is used; if there is no room, calls wait or are refused. " +
				"Limits on bodies apply to their size on the wire, and again after decompression.\n\n",
			append(append(memory(), sizes()...), infrastructureSizes()...),
		},
		{
			"How many", "",
			append(append(counts(), connections()...), infrastructureCounts()...),
		},
		{"How long", "", times()},
	}
}

// Document writes the tables of docs/limits.md: what can be set, and the fixed limits of each idea.
func Document(w io.Writer) error {
	ideas := Table()
	var b strings.Builder
	b.WriteString("\n## What you can set\n\n" +
		"| for each | limit | default | set with | beyond it | metric |\n|---|---|---|---|---|---|\n")
	for _, idea := range ideas {
		for _, l := range idea.Limits {
			if l.Set != "" {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Per, l.Name, l.Value, l.Set, l.Beyond, l.Metric)
			}
		}
	}
	for _, idea := range ideas {
		fmt.Fprintf(&b, "\n## %s\n\n%s| for each | limit | value | beyond it |\n|---|---|---|---|\n", idea.Name, idea.About)
		for _, l := range grouped(idea.Limits) {
			beyond := l.Beyond
			if l.Metric != "" {
				beyond += "; see " + l.Metric
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.Per, l.Name, l.Value, beyond)
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// grouped returns the fixed limits, those with the same Per one after the other.
func grouped(all []Limit) []Limit {
	var order []string
	for _, l := range all {
		if !slices.Contains(order, l.Per) {
			order = append(order, l.Per)
		}
	}
	fixed := slices.DeleteFunc(slices.Clone(all), func(l Limit) bool { return l.Set != "" })
	slices.SortStableFunc(fixed, func(a, b Limit) int { return slices.Index(order, a.Per) - slices.Index(order, b.Per) })
	return fixed
}

// size returns a number of bytes as text.
func size(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return count(n>>30) + " GiB"
	case n%(1<<20) == 0:
		return count(n>>20) + " MiB"
	case n%(1<<10) == 0:
		return count(n>>10) + " KiB"
	default:
		return count(n) + " bytes"
	}
}

// count returns a number as text, with commas.
func count(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return count(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// long returns a duration as text.
func long(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return count(int64(d/time.Hour)) + " h"
	case d%time.Minute == 0:
		return count(int64(d/time.Minute)) + " min"
	case d%time.Second == 0:
		return count(int64(d/time.Second)) + " s"
	default:
		return count(int64(d/time.Millisecond)) + " ms"
	}
}

// percent returns a share as text.
func percent(n int64) string { return count(n) + " %" }
