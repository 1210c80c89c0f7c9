// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// What is between these lines of the page is replaced.
const (
	tablesBegin = "<!-- measured: `make performance` writes what follows -->\n"
	tablesEnd   = "<!-- end of what is measured -->\n"
)

// replaceTables returns the page with other tables.
func replaceTables(page, tables string) (string, error) {
	before, rest, begins := strings.Cut(page, tablesBegin)
	_, after, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		return "", errors.New("the comments around the tables are missing")
	}
	return before + tablesBegin + "\n" + tables + "\n" + tablesEnd + after, nil
}

// tables returns the tables of cells and bars, as Markdown.
func tables(parts []*result) string {
	var b strings.Builder
	m := parts[0].Machine
	var loads []string
	for _, p := range parts {
		loads = append(loads, p.Machine.LoadAverage)
	}
	fmt.Fprintf(&b, "The machine: %d processors (%s), with a load average of %s before the parts of the run; %s.\n\n",
		m.Processors, m.Model, strings.Join(loads, ", "), m.Go)
	b.WriteString("| body | callers | peer | calls/s | p50 | p99 | CPU per call | peak memory " +
		"| gateway's rate / its (min–max) | gateway's CPU / its (min–max) |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, part := range parts {
		for _, c := range part.Cells {
			for i, p := range c.Peers {
				b.WriteString(row(c, p, i == 0))
			}
		}
	}
	b.WriteString("\n| bar | measured (min–max) | limit | |\n|---|---|---|---|\n")
	for _, name := range barNames(parts) {
		x := bestBar(parts, name)
		sign := "≥"
		if x.AtMost {
			sign = "≤"
		}
		measured := "–"
		if x.Verdict != unmeasured {
			measured = ratio(sample{x.Low, x.Value, x.High})
		}
		fmt.Fprintf(&b, "| %s | %s | %s %s | %s |\n", x.Name, measured, sign, number(x.Limit), x.Verdict)
	}
	return b.String()
}

// row is that of a peer in a cell, whose names are in its first row.
func row(c cell, p peer, first bool) string {
	body, callers := "", ""
	if first {
		body = fmt.Sprintf("%s, %s", c.Size, size(float64(c.BodyBytes)))
		callers = c.callers()
		if !c.Steady {
			callers += fmt.Sprintf("; %d rounds do not agree", c.Measured)
		}
	}
	rateRatio, cpuRatio := "", ""
	if p.Peer != gateway {
		rateRatio, cpuRatio = ratio(sampleOf(c.ratios(p, rate))), ratio(sampleOf(c.ratios(p, cpu)))
	}
	middle := func(of figure) string { return duration(sampleOf(each(p.Rounds, of)).middle) }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", body, callers, p.Peer,
		count(sampleOf(each(p.Rounds, rate)).middle), middle(p50), middle(p99), middle(cpu),
		size(float64(p.peak())), rateRatio, cpuRatio)
}

// barNames returns the names of all bars, in their order.
func barNames(parts []*result) []string {
	var names []string
	seen := make(map[string]bool)
	for _, part := range parts {
		for _, x := range part.Bars {
			// The bar of slow handlers has another name once their number is known.
			if !seen[x.Name] && (x.Verdict != unmeasured || !strings.HasPrefix(x.Name, "time of the slow handlers")) {
				seen[x.Name] = true
				names = append(names, x.Name)
			}
		}
	}
	return names
}

// bestBar returns the bar from the part that has measured it, if one has.
func bestBar(parts []*result, name string) (best bar) {
	for _, part := range parts {
		for _, x := range part.Bars {
			if x.Name == name && (best.Name == "" || best.Verdict == unmeasured) {
				best = x
			}
		}
	}
	return best
}

func ratio(s sample) string {
	if s.low == s.high {
		return number(s.middle)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.middle), number(s.low), number(s.high))
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }

func count(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// duration formats microseconds.
func duration(v float64) string {
	switch {
	case v < 1e3:
		return fmt.Sprintf("%.0f µs", v)
	case v < 100e3:
		return fmt.Sprintf("%.1f ms", v/1e3)
	case v < 1e6:
		return fmt.Sprintf("%.0f ms", v/1e3)
	}
	return fmt.Sprintf("%.1f s", v/1e6)
}

func size(v float64) string {
	switch {
	case v < 1e6:
		return fmt.Sprintf("%.3g KB", v/1e3)
	case v < 100e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	}
	return fmt.Sprintf("%.0f MB", v/1e6)
}
