// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table returns a table in Markdown, whose columns are aligned.
func Table(header []string, rows [][]string) string {
	width := make([]int, len(header))
	for _, row := range append(rows, header) {
		for i, text := range row {
			width[i] = max(width[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	write := func(row []string, padding string) {
		for i, text := range row {
			b.WriteString("| " + text + strings.Repeat(padding, width[i]-utf8.RuneCountInString(text)) + " ")
		}
		b.WriteString("|\n")
	}
	write(header, " ")
	write(make([]string, len(header)), "-")
	for _, row := range rows {
		write(row, " ")
	}
	return b.String()
}

// Cells returns the table of cells.
func Cells(cells ...*Cell) string {
	var rows [][]string
	for _, c := range cells {
		for i, p := range c.Peers {
			body, callers, rate, cpu := "", "", "", ""
			if i == 0 {
				body = fmt.Sprintf("%s, %s", c.Size, Bytes(int64(c.BodyBytes)))
				if callers = c.Who(); !c.Steady {
					callers += fmt.Sprintf("; %d rounds do not agree", c.Measured)
				}
			}
			if p.Peer != Gateway {
				rate, cpu = span(c.Ratios(p.Peer, Rate)), span(c.Ratios(p.Peer, CPU))
			}
			rows = append(rows, []string{
				body, callers, p.Peer, count(p.Rounds.Median(Rate)), Duration(p.Rounds.Median(P50)),
				Duration(p.Rounds.Median(P99)), Duration(p.Rounds.Median(CPU)), Bytes(p.AboveIdle()), rate, cpu,
			})
		}
	}
	return Table([]string{
		"body", "callers", "peer", "calls/s", "p50", "p99", "CPU per call", "peak memory", "gateway's rate / its (min–max)",
		"gateway's CPU / its (min–max)",
	}, rows)
}

// Who says who calls: how many, and over what.
func (c *Cell) Who() string {
	text := fmt.Sprintf("%d, %s", c.Callers, map[string]string{"h1": "HTTP/1.1", "h2": "HTTP/2"}[c.Protocol])
	if c.GRPC {
		text += " to gRPC"
	}
	return text
}

// String names the cell.
func (c *Cell) String() string {
	callers := " callers,"
	if c.Callers == 1 {
		callers = " caller,"
	}
	return c.Size + ", " + strings.Replace(c.Who(), ",", callers, 1)
}

// FanOutTable returns the table of calls to slow handlers.
func FanOutTable(measured ...*FanOut) string {
	var rows [][]string
	for _, f := range measured {
		sequence := "–"
		if f.Sequential > 0 {
			sequence = fmt.Sprintf("%.1f ms, %s", f.Sequential, ratio(f.SequentialToOne))
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d of %.0f ms, medians of %d", f.Handlers, f.HandlerMilliseconds, f.Times),
			fmt.Sprintf("%.1f ms", f.One), fmt.Sprintf("%.1f ms, %s", f.All, span(f.AllToOnes)),
			fmt.Sprintf("%.1f ms, %s", f.Together, span(f.TogetherToOnes)), sequence,
		})
	}
	return Table([]string{
		"handlers", "gateway: one", "all; / one", "directly: all at once; / one", "in sequence, as Cluster API; / one",
	}, rows)
}

// Table returns the table of conversions.
func (c *Conversion) Table() string {
	return Table([]string{fmt.Sprintf("handler that understands (Cluster of %s, %d callers)", Bytes(int64(c.BodyBytes)), c.Callers),
		"CPU of the gateway per call", "/ without a policy"}, [][]string{
		{"what no policy says", Duration(c.Plain), ""},
		{"what is sent", Duration(c.Same), span(c.SameToPlain)},
		{"v1beta1, and gets it", Duration(c.Converted), span(c.ConvertedToPlain)},
	})
}

// Table returns the table of a chain.
func (c *Chain) Table() string {
	return Table([]string{fmt.Sprintf("chain of %d, %s, %d patches each", c.Steps, Bytes(int64(c.BodyBytes)), c.Patches),
		"time of a call", "CPU of the gateway per call", "compared"}, [][]string{
		{"one of the handlers", Duration(c.One.Median(P50)), Duration(c.One.Median(CPU)), ""},
		{"the chain", Duration(c.Quick.Median(P50)), Duration(c.Quick.Median(CPU)), span(c.CPUToOnes()) + " times the CPU of one"},
		{
			fmt.Sprintf("the chain, of handlers of %.0f ms", c.StepMilliseconds), Duration(c.Slow.Median(P50)),
			Duration(c.Slow.Median(CPU)), span(c.TimeToSteps()) + " times theirs",
		},
	})
}

// Table returns the table of rules.
func (r *Rules) Table() string {
	return Table([]string{fmt.Sprintf("rules (%d callers)", r.Callers), "time of a call", "CPU of the gateway per call", "µs more"}, [][]string{
		{"none", Duration(r.None.Median(P50)), Duration(r.None.Median(CPU)), ""},
		{fmt.Sprintf("%d, of which %d match", r.Rules, r.Matching), Duration(r.All.Median(P50)), Duration(r.All.Median(CPU)), span(r.CPUMore())},
	})
}

// Table returns the table of the recording of calls.
func (r *Recording) Table() string {
	row := func(name string, rounds Rounds, compared string) []string {
		return []string{name, fmt.Sprintf("%.0f", rounds.Median(Rate)), Duration(rounds.Median(CPU)), compared}
	}
	return Table([]string{fmt.Sprintf("recording, %s, %d callers", Bytes(int64(r.BodyBytes)), r.Callers), "calls per second",
		"CPU of the gateway per call", "compared"}, [][]string{
		row("off", r.Without, ""), row("on", r.With, span(r.RateToWithout())+" times the rate"),
	})
}

// HandlerTable returns the table of numbers of handlers.
func HandlerTable(measured ...*Handler) string {
	var rows [][]string
	for _, h := range measured {
		all := h.Quick.Median(CPU)
		rows = append(rows, []string{
			strconv.Itoa(h.Handlers), Bytes(h.Idle), Duration(h.Beside.Median(CPU)), Duration(all),
			Duration(all / float64(h.Handlers)), Duration(h.Slow.Median(P50)),
		})
	}
	return Table([]string{
		"handlers", "idle memory", "CPU of a call beside them", "CPU of a call to all", "for each", "time of a call to all, slow",
	}, rows)
}

// Bars returns the table of the bars of all parts of a run, each from the first part that has measured it, and the number
// of the others.
func Bars(parts ...*Result) string {
	var rows [][]string
	found := make(map[string]bool) // whether they were measured
	for _, part := range parts {
		for _, x := range part.Bars {
			before := found[x.Name]
			found[x.Name] = before || x.Verdict != Unmeasured
			if before || !found[x.Name] {
				continue
			}
			sign := "≥"
			if x.AtMost {
				sign = "≤"
			}
			measured := span([]float64{x.Low, x.Value, x.High})
			rows = append(rows, []string{x.Name, measured, sign + " " + ratio(x.Limit), x.Verdict})
		}
	}
	text := Table([]string{"bar", "measured (min–max)", "limit", "verdict"}, rows)
	if n := len(found) - len(rows); n > 0 {
		text += fmt.Sprintf("\nBars that were not measured, because their peers, parts or cells were left out: %d.\n", n)
	}
	return text
}

// span formats the median, with the lowest and the highest value; "" without values.
func span(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		return ratio(low)
	}
	return fmt.Sprintf("%s (%s–%s)", ratio(Median(values)), ratio(low), ratio(high))
}

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }

func count(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Duration formats microseconds.
func Duration(v float64) string {
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

// Bytes formats a size.
func Bytes(n int64) string {
	switch v := float64(n); {
	case v < 1e6:
		return fmt.Sprintf("%.3g KB", v/1e3)
	case v < 100e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	default:
		return fmt.Sprintf("%.0f MB", v/1e6)
	}
}
