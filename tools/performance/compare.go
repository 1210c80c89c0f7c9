// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// bar matches a row of the table of bars: what is measured, its median, the lowest and the highest value if there are
// several, and the limit.
var bar = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([0-9.]+)(?: \(([0-9.]+)–([0-9.]+)\))?[^|]* \| ([≥≤]) [^|]+ \|`)

// measured is a bar as a page has it.
type measured struct {
	name            string
	median          string
	lowest, highest float64
	moreIsBetter    bool
}

// barsOf returns the bars of a page, in their order.
func barsOf(page string) ([]measured, error) {
	var bars []measured
	for _, m := range bar.FindAllStringSubmatch(page, -1) {
		b := measured{name: m[1], median: m[2], moreIsBetter: m[5] == "≥"}
		var err error
		if b.lowest, err = strconv.ParseFloat(cmp.Or(m[3], m[2]), 64); err != nil {
			return nil, err
		}
		if b.highest, err = strconv.ParseFloat(cmp.Or(m[4], m[2]), 64); err != nil {
			return nil, err
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, errors.New("no table of bars")
	}
	return bars, nil
}

// comparison returns a table of the bars of two pages. A bar is better or worse if the ranges of both runs have nothing
// in common: everything else may be chance.
func comparison(then, now string) (string, error) {
	before, err := barsOf(then)
	if err != nil {
		return "", fmt.Errorf("the page to compare with: %w", err)
	}
	after, err := barsOf(now)
	if err != nil {
		return "", err
	}
	old := map[string]measured{}
	for _, b := range before {
		old[b.name] = b
	}
	var s strings.Builder
	s.WriteString("| bar | then | now | |\n|---|---|---|---|\n")
	for _, b := range after {
		was, ok := old[b.name]
		delete(old, b.name)
		verdict := ""
		switch {
		case !ok:
			was.median, verdict = "-", "new"
		case b.lowest > was.highest && b.moreIsBetter, b.highest < was.lowest && !b.moreIsBetter:
			verdict = "better"
		case b.lowest > was.highest, b.highest < was.lowest:
			verdict = "worse"
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s |\n", b.name, was.median, b.median, verdict)
	}
	for _, b := range before {
		if _, left := old[b.name]; left {
			fmt.Fprintf(&s, "| %s | %s | - | gone |\n", b.name, b.median)
		}
	}
	return s.String(), nil
}
