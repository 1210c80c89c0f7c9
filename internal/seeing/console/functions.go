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
	"minute":    func(t time.Time) string { return t.UTC().Format("15:04 UTC") },
	"lower":     func(s any) string { return strings.ToLower(fmt.Sprint(s)) },
	"title":     func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	"plural":    text.Plural,
	"message":   printers.Message,
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
	"reason":           printers.Reason,
	"stated":           stated,
	"verdict":          verdictOf,
	"healthbar":        healthbar,
	"breakable":        breakable,
	"place":            place,
	"chart":            chartOf,
	"rollout":          func(r status.Rollout) string { return cmp.Or(printers.RolloutMessage(&r), r.Message) },
	"certificate":      func(c status.Certificate, now time.Time) string { return printers.CertificateText(&c, now) },
	"certificateTitle": func(c status.Certificate) string { return printers.CertificateTitle(&c) },
	"differs":          func(d status.RolloutDifference) string { return printers.Difference(&d) },
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

// barWidth is the width of a healthbar, in its own unit.
const barWidth = 100

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
		widths[i] = max(float64(tiles[i].Count)/float64(total)*barWidth, 1)
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
