// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
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

// tables returns the tables of cells and bars, with the machine they are from. The curves, and the bars, have the cells
// with one caller.
func tables(parts []*report.Result) string {
	m := parts[0].Machine
	var loads []string
	for _, p := range parts {
		loads = append(loads, p.Machine.Load)
	}
	const machine = "The machine: %d processors (%s), with a load average of %s before the parts of the run; %s.\n\n"
	return fmt.Sprintf(machine, m.Processors, m.Model, strings.Join(loads, ", "), m.Go) +
		report.Cells(withSeveral(merge(parts).Cells)...) + "\n" + report.Bars(parts...)
}

// withSeveral returns the cells that have several callers.
func withSeveral(cells []*report.Cell) []*report.Cell {
	return slices.DeleteFunc(cells, func(c *report.Cell) bool { return c.Callers == 1 })
}

// merge returns the measurements of all parts, one after the other.
func merge(parts []*report.Result) *report.Result {
	all := new(report.Result)
	for _, p := range parts {
		all.Cells, all.Handlers = append(all.Cells, p.Cells...), append(all.Handlers, p.Handlers...)
	}
	return all
}
