// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// table is a table in Markdown.
type table struct{ lines []string }

func newTable(columns ...string) *table {
	return &table{[]string{
		"| " + strings.Join(columns, " | ") + " |", strings.Repeat("|---", len(columns)) + "|",
	}}
}

// row adds a row. Durations are printed in milliseconds, and from ten seconds on in seconds.
func (t *table) row(cells ...any) {
	var texts []string
	for _, c := range cells {
		if d, ok := c.(time.Duration); ok {
			if c = fmt.Sprintf("%.1f ms", d.Seconds()*1000); d >= 10*time.Second {
				c = fmt.Sprintf("%.1f s", d.Seconds())
			}
		}
		texts = append(texts, fmt.Sprint(c))
	}
	t.lines = append(t.lines, "| "+strings.Join(texts, " | ")+" |")
}

func (t *table) write(to io.Writer, title string) {
	_, _ = fmt.Fprintf(to, "\n%s\n\n%s\n", title, strings.Join(t.lines, "\n"))
}

// lost says how many calls had no answer, and why the first of them had none.
func lost(o outcome) string {
	if o.lost == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.100s)", o.lost, strings.ReplaceAll(o.first.Error(), "|", "/"))
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

func ratio(of, to time.Duration) string { return fmt.Sprintf("%.2f", of.Seconds()/to.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// shares returns which part of the calls each replica had.
func shares(calls []float64) string {
	all := 0.0
	for _, n := range calls {
		all += n
	}
	var texts []string
	for _, n := range calls {
		texts = append(texts, percent(n/max(all, 1)))
	}
	return strings.Join(texts, ", ")
}
