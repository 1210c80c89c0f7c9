// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
)

// recorded returns the calls of a range: 10 for each step, the last quarter of which fails, in a process that started
// half way through it, with a change at the end of each step that is given.
func recorded(of activity.Range, changed ...int) *status.History {
	n := int(of.Length / of.Step)
	h := &status.History{Now: now, Start: now.Add(-of.Length), Started: now.Add(-of.Length / 2), Step: of.Step, Points: make([]status.HistoryPoint, n)}
	for i := n / 2; i < n; i++ {
		h.Points[i] = status.HistoryPoint{Calls: 10, P50: .01, P99: .15}
	}
	for i := n - n/4; i < n; i++ {
		h.Points[i].Failures = 5
	}
	for _, step := range changed {
		h.Changes = append(h.Changes, status.Change{At: h.Start.Add(time.Duration(step+1) * of.Step), Text: fmt.Sprintf("<b>change %d", step)})
	}
	return h
}

func TestChartsOfEachRange(t *testing.T) {
	g := &gateways{extensions: []status.Extension{acme()}}
	var asked []string
	g.history = func(extension, handler string, of activity.Range) *status.History {
		asked = append(asked, extension+" "+handler+" "+of.Name)
		return recorded(of, 40)
	}
	h := newPage(g)
	for target, want := range map[string]struct{ asked, heading, chosen, times string }{
		"/":                             {"  15m", "Calls to all extensions", "15 minutes", "−15 min"},
		"/?range=1h":                    {"  1h", "Calls to all extensions", "1 hour", "−60 min"},
		"/?range=24h":                   {"  24h", "Calls to all extensions", "24 hours", "−24 h"},
		"/?range=7d":                    {"  15m", "Calls to all extensions", "15 minutes", "−15 min"}, // there is none
		"/extensions/acme?range=1h":     {"acme  1h", "Calls to acme", "1 hour", "−60 min"},
		"/extensions/acme?handler=none": {"acme  15m", "Calls to acme", "15 minutes", "−15 min"},
		"/extensions/acme?handler=gate.acme&range=24h": {"acme gate.acme 24h", "Calls to gate.acme", "24 hours", "−24 h"},
	} {
		asked, h = nil, newPage(g)
		code, body := get(t, h, target)
		if code != http.StatusOK || !slices.Equal(asked, []string{want.asked}) {
			t.Errorf("%s: status %d, asked for %q, want %q", target, code, asked, want.asked)
		}
		for _, text := range []string{
			`<h2 id="calls">` + want.heading + `</h2>`, ` aria-current="true">` + want.chosen + `</a>`, "Calls per minute",
			">" + want.times + "</text>", "75 % succeeded", `<title id="latency-title">Latency</title>`,
			`The longest 99th percentile is 150ms, at`, "&lt;b&gt;change 40", `<rect class="before" width="50.0%"`, "<span>200ms</span><span>100ms</span>",
		} {
			if !strings.Contains(body, text) {
				t.Errorf("%s: the page does not have %s", target, text)
			}
		}
		if strings.Contains(body, "<b>") || strings.Contains(body, "style=") {
			t.Errorf("%s: a text of others is part of the page, or a style that its policy forbids", target)
		}
	}
	if _, body := get(t, h, "/?show=rules"); strings.Contains(body, `id="calls"`) {
		t.Error("a page with one list has charts")
	}
}

// The calls to all extensions are read once for all pages, those of one for each.
func TestChartsAreShared(t *testing.T) {
	reads := map[string]int{}
	g := &gateways{extensions: []status.Extension{acme()}, history: func(extension, _ string, of activity.Range) *status.History {
		reads[extension+of.Name]++
		return recorded(of)
	}}
	h := newPage(g)
	h.now()
	h.asked = time.Now().Add(time.Hour) // nothing gets old
	for range 3 {
		get(t, h, "/")
		get(t, h, "/?range=24h")
		get(t, h, "/extensions/acme")
	}
	if reads["15m"] != 1 || reads["24h"] != 1 || reads["acme15m"] != 3 {
		t.Errorf("calls were read so often: %v", reads)
	}
}

func TestChartsWithoutCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		history status.History
		want    string
	}{
		"none":    {status.History{}, "No calls in this time."},
		"no room": {status.History{Full: true}, "has no room for these"},
		"no step": {status.History{Step: time.Minute, Points: make([]status.HistoryPoint, 60)}, "No calls in this time."},
	} {
		g := &gateways{history: func(string, string, activity.Range) *status.History { return &tt.history }}
		if code, body := get(t, newPage(g), "/"); code != http.StatusOK || !strings.Contains(body, tt.want) || strings.Contains(body, "NaN") || strings.Contains(body, "Inf") {
			t.Errorf("%s: status %d, want %q in\n%s", name, code, tt.want, body)
		}
	}
}

// Marks that are near each other share a text, and the page lists the last changes only.
func TestMarks(t *testing.T) {
	for name, tt := range map[string]struct {
		changed []int
		want    []string // texts of the marks
		list    string
	}{
		"none":          {nil, nil, ""},
		"one":           {[]int{10}, []string{"1"}, "1 change"},
		"at the end":    {[]int{59}, []string{"1"}, "1 change"},
		"far and near":  {[]int{10, 30, 31, 32, 50}, []string{"1", "2–4", "5"}, "5 changes"},
		"more than fit": {slices.Repeat([]int{5}, maxChanges+7), []string{"8–27"}, "20 changes"},
	} {
		g := &gateways{history: func(_, _ string, of activity.Range) *status.History { return recorded(of, tt.changed...) }}
		_, body := get(t, newPage(g), "/")
		plot, _, _ := strings.Cut(body, "</figure>")
		var got []string
		for _, mark := range strings.Split(plot, `<g class="mark">`)[1:] {
			_, text, _ := strings.Cut(mark, "<text ")
			_, text, _ = strings.Cut(text, ">")
			text, _, _ = strings.Cut(text, "<")
			got = append(got, text)
		}
		if !slices.Equal(got, tt.want) || !strings.Contains(body, "<summary>"+tt.list+"</summary>") && tt.list != "" {
			t.Errorf("%s: the marks are %q, want %q, and %q", name, got, tt.want, tt.list)
		}
		if more := len(tt.changed) - maxChanges; strings.Contains(body, "and 7 before") != (more > 0) {
			t.Errorf("%s: the page counts other changes than %d", name, more)
		}
	}
}

func TestCeiling(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, .0003: .0004, .011: .02, .02: .02, .5: .6, 1: 1, 3.9: 4, 9.5: 10, 41: 60, 99: 100} {
		if got := ceiling(most); fmt.Sprintf("%g", float32(got)) != fmt.Sprintf("%g", float32(want)) {
			t.Errorf("the scale of %g ends at %g, want %g", most, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		part, whole uint64
		want        string
	}{{0, 3, "0 %"}, {3, 3, "100 %"}, {99_999, 100_000, "over 99.9 %"}, {1, 100_000, "under 0.1 %"}, {1, 3, "33.3 %"}, {1, 2, "50 %"}} {
		if got := percent(tt.part, tt.whole); got != tt.want {
			t.Errorf("%d of %d are %s, want %s", tt.part, tt.whole, got, tt.want)
		}
	}
}

// The page links to a dashboard only if it knows one.
func TestDashboard(t *testing.T) {
	for _, target := range []string{"/", "/extensions/acme"} {
		h := newPage(&gateways{extensions: []status.Extension{acme()}})
		if _, body := get(t, h, target); strings.Contains(body, ">Dashboard<") {
			t.Errorf("%s links to a dashboard that is not known", target)
		}
		h.Dashboard = "https://grafana.example/d/hookgate?a=1&b=2"
		if _, body := get(t, h, target); !strings.Contains(body, `<a href="https://grafana.example/d/hookgate?a=1&amp;b=2" rel="noreferrer">Dashboard</a>`) {
			t.Errorf("%s does not link to the dashboard", target)
		}
	}
}
