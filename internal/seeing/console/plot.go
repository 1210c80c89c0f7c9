// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// plot is a chart. What is drawn stretches with the page; texts and lines keep their sizes.
type plot struct {
	ID, Title string
	Keys      []legend
	Text      string   // what it shows, for those who do not see it
	Scale     []string // at the top, half way, and at the bottom
	Drawing   template.HTML
	Times     []tick // below
}

// legend says what has a colour.
type legend struct{ Class, Text string }

// tick is a text at a place between 0 and 100.
type tick struct {
	At           int
	Text, Anchor string
}

// marksApart is how far the texts of marks are from each other, so that each has room on a telephone.
const marksApart = 10

// latency returns the chart of how long calls took.
func (c *charts) latency() plot {
	var most status.Seconds
	var at int
	for i, p := range c.Points {
		if p.P99 > most {
			most, at = p.P99, i
		}
	}
	top := ceiling(float64(most))
	p := plot{
		ID: "latency", Title: "Latency", Keys: []legend{{"p50", "p50"}, {"p99", "p99"}},
		Scale: scale(top, func(v float64) string { return printers.Latency(status.Seconds(v)) }), Times: c.times(),
		Text: "No calls.",
	}
	if most > 0 {
		p.Text = fmt.Sprintf("The 99th percentile peaked at %s, at %s UTC; the scale ends at %s.",
			printers.Latency(most), c.At(at).UTC().Format("15:04"), p.Scale[0])
	}
	var b strings.Builder
	c.line(&b, "p99", top, func(p status.HistoryPoint) float64 { return float64(p.P99) })
	c.line(&b, "p50", top, func(p status.HistoryPoint) float64 { return float64(p.P50) })
	p.Drawing = c.draw(&p, b.String())
	return p
}

// line draws a line that has a level for each step with calls, and none for the others.
func (c *charts) line(b *strings.Builder, class string, top float64, of func(p status.HistoryPoint) float64) {
	width := 100 / float64(len(c.Points))
	var path strings.Builder
	joined := false
	for i, p := range c.Points {
		if p.Calls == 0 {
			joined = false
			continue
		}
		to := "M"
		if joined {
			to = "L"
		}
		y := 100 - 100*of(p)/top
		fmt.Fprintf(&path, "%s%.2f %.1fH%.2f", to, float64(i)*width, y, float64(i+1)*width)
		joined = true
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path class="%s" d="%s"/>`, class, path.String())
	}
}

// rate returns the chart of how many calls succeeded and failed.
func (c *charts) rate() plot {
	most, failed := 0.0, 0.0
	for i, p := range c.Points {
		most, failed = max(most, c.perSecond(i, p.Calls)), max(failed, c.perSecond(i, p.Failures))
	}
	unit, factor := "second", 1.0
	if most < 1 {
		unit, factor = "minute", 60
	}
	top := ceiling(most * factor)
	p := plot{
		ID: "rate", Title: "Calls per " + unit, Keys: []legend{{"succeeded", "succeed"}, {"failed", "fail"}},
		Scale: scale(top, func(v float64) string { return fmt.Sprintf("%g", v) }), Times: c.times(), Text: "No calls.",
	}
	if most > 0 {
		p.Text = fmt.Sprintf("The calls peaked at %.3g per %s, and the failed calls at %.3g; the scale ends at %s.",
			most*factor, unit, failed*factor, p.Scale[0])
	}
	var b strings.Builder
	width := 100 / float64(len(c.Points))
	for i, p := range c.Points {
		below := 0.0
		for _, part := range []struct {
			class string
			calls uint64
		}{{"failed", p.Failures}, {"succeeded", p.Calls - min(p.Failures, p.Calls)}} {
			if part.calls == 0 {
				continue
			}
			height := max(100*c.perSecond(i, part.calls)*factor/top, 1)
			fmt.Fprintf(&b, `<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%.1f"/>`,
				part.class, float64(i)*width, 100-below-height, width*.9, height)
			below += height
		}
	}
	p.Drawing = c.draw(&p, b.String())
	return p
}

// draw returns a drawing: the time before the process started, the grid, shapes, what steps and marks say to those who
// point at them, and the numbers of the changes.
func (c *charts) draw(p *plot, shapes string) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" role="img" aria-labelledby="%[1]s-title %[1]s-text">`+
		`<title id="%[1]s-title">%[2]s</title><desc id="%[1]s-text">%[3]s</desc>`,
		p.ID, template.HTMLEscapeString(p.Title), template.HTMLEscapeString(p.Text))
	if before := c.place(c.Started); before > 0 {
		fmt.Fprintf(&b, `<rect class="before" width="%.1f%%" height="100%%"/>`, before)
	}
	for _, y := range []string{"0.5%", "50%", "99.5%"} {
		fmt.Fprintf(&b, `<line class="grid" x1="0" x2="100%%" y1="%[1]s" y2="%[1]s"/>`, y)
	}
	for _, t := range p.Times {
		fmt.Fprintf(&b, `<line class="grid" x1="%[1]d%%" x2="%[1]d%%" y1="0" y2="100%%"/>`, t.At)
	}
	fmt.Fprintf(&b, `<svg viewBox="0 0 100 100" preserveAspectRatio="none">%s</svg>`, shapes)
	width := 100 / float64(len(c.Points))
	for i, of := range c.Points {
		if of.Calls > 0 {
			fmt.Fprintf(&b, `<rect class="hit" x="%.2f%%" width="%.2f%%" height="100%%"><title>%s</title></rect>`,
				float64(i)*width, width, template.HTMLEscapeString(c.told(i)))
		}
	}
	c.mark(&b)
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // of numbers and of texts that are escaped
}

// mark draws a line for each change. Those at about the same time share the text with their numbers in the list.
func (c *charts) mark(b *strings.Builder) {
	for i := 0; i < len(c.Changes); {
		begin, said := i, []string{}
		at := c.place(c.Changes[i].At)
		b.WriteString(`<g class="mark">`)
		for ; i < len(c.Changes) && c.place(c.Changes[i].At)-at < marksApart; i++ {
			said = append(said, c.Changes[i].Text)
			fmt.Fprintf(b, `<line x1="%[1]s" x2="%[1]s" y1="0" y2="100%%"/>`, fmt.Sprintf("%.1f%%", c.place(c.Changes[i].At)))
		}
		number, anchor, aside := strconv.Itoa(c.Changes[begin].Number), "start", 4
		if last := c.Changes[i-1].Number; last != c.Changes[begin].Number {
			number = fmt.Sprintf("%s–%d", number, last)
		}
		if at > 100-marksApart {
			anchor, aside = "end", -4
		}
		fmt.Fprintf(b, `<text x="%.1f%%" dx="%d" y="12" text-anchor="%s">%s</text><title>%s</title></g>`,
			at, aside, anchor, number, template.HTMLEscapeString(strings.Join(said, "; ")))
	}
}

// place returns where a time is in a drawing, between 0 and 100.
func (c *charts) place(at time.Time) float64 {
	whole := time.Duration(len(c.Points)) * c.Step
	return min(max(100*float64(at.Sub(c.Start))/float64(cmp.Or(whole, 1)), 0), 100)
}

// times returns the texts below a drawing.
func (c *charts) times() []tick {
	whole := time.Duration(len(c.Points)) * c.Step
	parts, unit, name := 4, time.Minute, "min"
	switch {
	case whole > time.Hour:
		unit, name = time.Hour, "h"
	case whole < time.Hour:
		parts = 3
	}
	var ticks []tick
	for i := range parts {
		ticks = append(ticks, tick{
			i * 100 / parts, fmt.Sprintf("−%d %s", whole*time.Duration(parts-i)/time.Duration(parts)/unit, name), "middle",
		})
	}
	ticks[0].Anchor = "start"
	return append(ticks, tick{100, "now", "end"})
}

// ceiling returns a number for the top of a scale: half of it is as easy to read.
func ceiling(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, digit := range []float64{1, 2, 4, 6, 8, 10} {
		if digit*power >= most {
			return digit * power
		}
	}
	return 10 * power
}

func scale(top float64, said func(v float64) string) []string {
	return []string{said(top), said(top / 2), "0"}
}
