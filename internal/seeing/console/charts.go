// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// maxChanges is the number of changes that a page lists beside its charts. Others are older.
const maxChanges = 20

// charts show how many calls have succeeded and failed in a range of time, how long they took, and what has changed.
type charts struct {
	*status.History
	Of        string // whose calls they are
	All       string // the link to the calls of the whole extension, if those of a handler are shown
	Ranges    []choice
	Summary   string
	Plots     []plot
	Changes   []numbered
	Earlier   int
	Dashboard string
}

// choice is a link to the same page with something else chosen.
type choice struct {
	Text, Link string
	Chosen     bool
}

// numbered is a change with its number in the charts.
type numbered struct {
	status.Change
	Number int
}

// rangeTexts say the ranges, by their names.
var rangeTexts = map[string]string{"15m": "15 minutes", "1h": "1 hour", "24h": "24 hours"}

// rangeOf returns the range that a request chooses, the shortest by default.
func rangeOf(r *http.Request) activity.Range {
	name := r.URL.Query().Get("range")
	i := slices.IndexFunc(activity.Ranges[:], func(of activity.Range) bool { return of.Name == name })
	return activity.Ranges[max(i, 0)]
}

// charts returns the charts of a handler, of an extension, or of all extensions if both are empty.
func (h *Handler) charts(r *http.Request, extension, handler string) *charts {
	of := rangeOf(r)
	c := &charts{History: h.history(extension, handler, of), Dashboard: h.Dashboard, Of: "all extensions"}
	link := func(name, handler string) string {
		values := url.Values{"range": {name}}
		if handler != "" {
			values.Set("handler", handler)
		}
		return (&url.URL{Path: r.URL.Path, RawQuery: values.Encode(), Fragment: "calls"}).String()
	}
	for _, other := range activity.Ranges {
		c.Ranges = append(c.Ranges, choice{rangeTexts[other.Name], link(other.Name, handler), other == of})
	}
	if extension != "" {
		c.Of = extension
	}
	if handler != "" {
		c.Of, c.All = handler, link(of.Name, "")
	}
	c.summarize()
	for i, change := range c.History.Changes {
		c.Changes = append(c.Changes, numbered{change, i + 1})
	}
	c.Earlier = max(0, len(c.Changes)-maxChanges)
	c.Changes = c.Changes[c.Earlier:]
	c.Plots = []plot{c.latency(), c.rate()}
	return c
}

// chartOf returns the address of the charts of a handler.
func chartOf(extension, handler string) string {
	return (&url.URL{
		Path: "/extensions/" + extension, RawQuery: url.Values{"handler": {handler}}.Encode(), Fragment: "calls",
	}).String()
}

// history returns the calls of a range, those of all extensions as they were a moment ago.
func (h *Handler) history(extension, handler string, of activity.Range) *status.History {
	h.now() // which forgets what is old
	h.mu.Lock()
	defer h.mu.Unlock()
	if extension != "" {
		return h.source.History(extension, handler, of)
	}
	if h.latest.history[of] == nil {
		h.latest.history[of] = h.source.History("", "", of)
	}
	return h.latest.history[of]
}

// summarize says what the charts show in numbers.
func (c *charts) summarize() {
	var all, failed uint64
	for _, p := range c.Points {
		all, failed = all+p.Calls, failed+p.Failures
	}
	switch {
	case c.Full:
		c.Summary = "This process has no room for these calls, because it keeps the calls of other handlers."
	case all == 0:
		c.Summary = "No calls in this time."
	default:
		c.Summary = fmt.Sprintf("%s, %s succeeded, %d failed",
			text.Plural(int(min(all, 1<<31)), "call"), percent(all-failed, all), failed)
	}
}

// percent returns a part of a whole, which is not rounded to all or nothing.
func percent(part, whole uint64) string {
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == whole || part == 0:
	case p > 99.9:
		return "over 99.9 %"
	case p < .1:
		return "under 0.1 %"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", p), ".0") + " %"
}

// At returns when a step begins.
func (c *charts) At(step int) time.Time { return c.Start.Add(time.Duration(step) * c.Step) }

// perSecond returns the calls of a step for each second. A step that has just begun counts as one of some length.
func (c *charts) perSecond(step int, calls uint64) float64 {
	length := c.Step
	if step == len(c.Points)-1 {
		length = max(c.Now.Sub(c.At(step)), activity.Slot)
	}
	return float64(calls) / length.Seconds()
}

// row is a row of the table that says what the charts show.
type row struct {
	At              time.Time
	Calls, Failures uint64
	P50, P99        status.Seconds
}

// Rows returns the steps with calls, newest first.
func (c *charts) Rows() []row {
	var rows []row
	for i, p := range slices.Backward(c.Points) {
		if p.Calls > 0 {
			rows = append(rows, row{c.At(i), p.Calls, p.Failures, p.P50, p.P99})
		}
	}
	return rows
}

// told returns what a step has, for those who point at it.
func (c *charts) told(step int) string {
	p := c.Points[step]
	return fmt.Sprintf("%s UTC: %s, %d failed, p50 %s, p99 %s", c.At(step).UTC().Format("15:04:05"),
		text.Plural(int(p.Calls), "call"), p.Failures, printers.Latency(p.P50), printers.Latency(p.P99))
}
