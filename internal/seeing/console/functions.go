// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// functions are what the templates call.
var functions = template.FuncMap{
	"age":       age,
	"latency":   printers.Latency,
	"instant":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"lower":     func(s any) string { return strings.ToLower(fmt.Sprint(s)) },
	"title":     func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	"plural":    text.Plural,
	"message":   printers.Message,
	"sparkline": sparkline,
	"count":     func(n uint64) int { return int(min(n, math.MaxInt)) },
	"turns":     turnsOf,
	"hasSteps":  func(h status.HookedHandler) bool { return len(h.Steps) > 0 },
	"waits":     func(g *status.Gateway, a act, t waitingTable) waitingView { return waitingView{g.Now, a, t} },
	"only":      func(rows []waiting) waitingTable { return waitingTable{Rows: rows, Open: true} },
	"held":      func(v waitingView, h status.Hold) hold { return hold{v.Now, v.Act, h} },
	"noted":     printers.Noted,
	"messages":  func(h status.Handler) []string { return printers.MessageNotes(&h) },
	"refused":   func(h status.Handler) string { return printers.Refused(&h) },
	"provides":  provides,
	"instances": func(o status.InfrastructureObject) string { return printers.Instances(&o) },
	"outstanding": func(o status.InfrastructureObject, now time.Time) string {
		return printers.InfrastructureMessage(&o, now)
	},
	"reason":    printers.Reason,
	"stated":    stated,
	"verdict":   verdictOf,
	"healthbar": healthbar,
	"breakable": breakable,
	"place":     place,
	"rollout":   func(r status.Rollout) string { return cmp.Or(printers.RolloutMessage(&r), r.Message) },
	"differs":   func(d status.RolloutDifference) string { return printers.Difference(&d) },
	"extensionOf": func(handler string) string { // of its registered name
		_, extensionConfig, _ := strings.Cut(handler, ".")
		return extensionConfig
	},
}

// place returns where the first page has what a handler without a server is, of rule.x /?show=rules#rule-x. That of a
// rollout has the name of its extension.
func place(kind, handler string) string {
	word, name, _ := strings.Cut(handler, ".")
	if kind == "ExtensionRollout" {
		word = "rollout"
	}
	return "/?show=" + word + "s#" + word + "-" + name
}

// breakable returns a text that may be broken behind what separates the parts of a long word, such as a path or a URL.
func breakable(s string) template.HTML {
	var b strings.Builder
	for word := range strings.SplitAfterSeq(s, " ") {
		escaped := template.HTMLEscapeString(word)
		if len(word) > longWord {
			escaped = breaks.Replace(escaped)
		}
		b.WriteString(escaped)
	}
	return template.HTML(b.String()) //nolint:gosec // it is escaped
}

// longWord is the length of a word that may have no room in a line of a cell.
const longWord = 24

var breaks = strings.NewReplacer("://", "://<wbr>", "/", "/<wbr>", ".", ".<wbr>", ",", ",<wbr>", "=", "=<wbr>",
	"_", "_<wbr>", ":", ":<wbr>")

// healthbar draws which part of the extensions has each state. One of thousands is seen, too.
func healthbar(tiles []tile) template.HTML {
	total, whole := 0, 0.0
	for i := range tiles {
		total += tiles[i].Count
	}
	if total == 0 {
		return ""
	}
	widths := make([]float64, len(tiles))
	for i := range tiles {
		widths[i] = max(float64(tiles[i].Count)/float64(total)*sparkWidth, 1)
		whole += widths[i]
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="health" viewBox="0 0 %.2f 1" preserveAspectRatio="none" aria-hidden="true">`, whole)
	at := 0.0
	for i := range tiles {
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f" width="%.2f" height="1"/>`,
			strings.ToLower(string(tiles[i].State)), at, widths[i])
		at += widths[i]
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // of numbers and states
}

// age returns how long ago a time was; empty if it is not known. Seconds are left out above a minute, so that a page
// changes seldom.
func age(at any, now time.Time) string {
	var d time.Duration
	switch t := at.(type) {
	case time.Time:
		d = now.Sub(t)
	case *time.Time:
		if t == nil {
			return ""
		}
		d = now.Sub(*t)
	}
	if d >= time.Minute {
		d = d.Truncate(time.Minute)
	}
	return duration.HumanDuration(d)
}

// The size of a sparkline, in its own unit.
const (
	sparkWidth  = 100
	sparkHeight = 24
)

// sparkline draws the calls of the last minutes: a bar for each part of the window, its failures in front of it, and a
// line for the 99th percentile. All have scales of their own: a sparkline shows a course, the numbers stand beside it.
func sparkline(c status.Calls) template.HTML {
	p := c.Points
	if len(p.Total) == 0 {
		return ""
	}
	var most uint64
	var slowest status.Seconds
	for i := range p.Total {
		most, slowest = max(most, p.Total[i]), max(slowest, p.P99[i])
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" `+
		`aria-label="%s, %d failed">`,
		sparkWidth, sparkHeight, text.Plural(int(c.Total), "call"), c.Failures)
	width := float64(sparkWidth) / float64(len(p.Total))
	bar := func(class string, i int, n uint64) {
		if n == 0 {
			return
		}
		height := max(float64(n)/float64(most)*sparkHeight, 1)
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
			class, float64(i)*width, sparkHeight-height, width*.8, height)
	}
	var line []string
	for i := range p.Total {
		bar("calls", i, p.Total[i])
		bar("failures", i, p.Failures[i])
		if p.Total[i] > 0 && slowest > 0 {
			height := float64(p.P99[i]/slowest) * (sparkHeight - 2)
			line = append(line, fmt.Sprintf("%.1f,%.1f", (float64(i)+.4)*width, sparkHeight-height-1))
		}
	}
	if len(line) > 1 {
		fmt.Fprintf(&b, `<polyline class="p99" points="%s"/>`, strings.Join(line, " "))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // of numbers alone
}
