// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func example() *result {
	peers := func(factor float64) []peer {
		return []peer{
			{Peer: "direct", Rounds: []round{{Rate: 9000, P50: 10, P99: 20, CPU: 5}, {Rate: 8000, P50: 11, P99: 21, CPU: 5}}},
			{Peer: "ReverseProxy", Idle: 1e6, Rounds: []round{{Rate: 1000, P50: 100, P99: 200, CPU: 50, Peak: 2e6}, {Rate: 100, P50: 1e3, P99: 2e6, CPU: 60, Peak: 3e6}}},
			{Peer: gateway, Idle: 5e6, Rounds: []round{{Rate: 500 * factor, P50: 200, P99: 300, CPU: 75, Peak: 9e6}, {Rate: 80, P50: 1e3, P99: 2e6, CPU: 60, Peak: 8e6}}},
		}
	}
	return &result{
		Cells: []cell{
			{Size: "S", BodyBytes: 3707, Callers: 16, Protocol: "h1", Measured: 2, Steady: true, Peers: peers(1)},
			{Size: "M", BodyBytes: 250e3, Callers: 100, Protocol: "h1", GRPC: true, Measured: 10, Peers: peers(0.5)},
		},
		Handlers: []handlers{
			{Handlers: 1, Beside: []round{{CPU: 200}}, Quick: []round{{CPU: 200}}, Slow: []round{{P50: 21e3}}},
			{Handlers: 100, Beside: []round{{CPU: 210}}, Quick: []round{{CPU: 11e3}}, Slow: []round{{P50: 30e3}}},
		},
		Bars: []bar{
			{Name: "a", Value: 1.5, Low: 1, High: 2, Limit: 1.1, Verdict: "PASS"},
			{Name: "b", Limit: 3, AtMost: true, Verdict: unmeasured},
		},
	}
}

func TestTables(t *testing.T) {
	other := &result{Bars: []bar{{Name: "a", Verdict: unmeasured}, {Name: "b", Value: 4, Low: 4, High: 4, Limit: 3, AtMost: true, Verdict: "BELOW"}}}
	got := tables([]*result{example(), other})
	for _, want := range []string{
		"| S, 3.71 KB | 16, HTTP/1.1 | direct | 8500 | 10 µs | 20 µs | 5 µs | 0 KB | 0.03 (0.01–0.06) | 13.50 (12.00–15.00) |\n",
		"|  |  | ReverseProxy | 550 | 550 µs | 1.0 s | 55 µs | 2.0 MB | 0.65 (0.50–0.80) | 1.25 (1.00–1.50) |\n",
		"|  |  | gateway | 290 | 600 µs | 1.0 s | 68 µs | 4.0 MB |  |  |\n",
		"| M, 250 KB | 100, HTTP/1.1 to gRPC; 10 rounds do not agree | direct |",
		"| a | 1.50 (1.00–2.00) | ≥ 1.10 | PASS |\n", // measured in the first part
		"| b | 4.00 | ≤ 3.00 | BELOW |\n",            // measured in the second one
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n| a |"); n != 1 {
		t.Errorf("a bar is there %d times", n)
	}
}

func TestReplaceTables(t *testing.T) {
	page := "before\n" + tablesBegin + "old\n" + tablesEnd + "after\n"
	got, err := replaceTables(page, "new\n")
	if want := "before\n" + tablesBegin + "\nnew\n\n" + tablesEnd + "after\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := replaceTables(got, "new\n"); err != nil || again != got {
		t.Errorf("a second time, it is %q, %v", again, err)
	}
	for _, page := range []string{"", tablesBegin, tablesEnd, tablesEnd + tablesBegin} {
		if got, err := replaceTables(page, "new\n"); err == nil {
			t.Errorf("%q becomes %q", page, got)
		}
	}
}

func TestPageHasTheComments(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replaceTables(string(page), ""); err != nil {
		t.Error(err)
	}
	for name, draw := range curves {
		pictures, err := draw(example())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pictures {
			if !strings.Contains(string(page), "(performance/"+p.name+".svg)") {
				t.Errorf("the page does not show the curve %s of %s", p.name, name)
			}
		}
	}
}

func TestCurves(t *testing.T) {
	for name, draw := range curves {
		pictures, err := draw(example())
		if err != nil || len(pictures) == 0 {
			t.Fatalf("%s: %d pictures, %v", name, len(pictures), err)
		}
		for _, p := range pictures {
			text := checkXML(t, p)
			for _, want := range map[string][]string{
				"callers": {"gateway", "ReverseProxy", "callers"}, "bodies": {"gateway", "ReverseProxy", "KB of body"}, "handlers": {"handlers", "100"},
			}[name] {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is not among the texts: %s", p.name, want, text)
				}
			}
		}
		if _, err := draw(&result{}); !errors.Is(err, errNothing) {
			t.Errorf("%s: without measurements: %v", name, err)
		}
	}
	broken := example()
	broken.Cells[0].Peers[1].Rounds[0].Rate = 0
	if _, err := callerCurves(broken); err == nil {
		t.Error("a rate of 0 is drawn on a logarithmic axis")
	}
	broken = example()
	broken.Cells[1].Peers = broken.Cells[1].Peers[1:]
	if _, err := bodyCurves(broken); err == nil {
		t.Error("a line is drawn with the points of two peers")
	}
}

// checkXML reads the picture, and returns its texts.
func checkXML(t *testing.T, p picture) string {
	t.Helper()
	var texts []string
	for decoder := xml.NewDecoder(strings.NewReader(string(p.svg))); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(texts, " ")
		}
		if err != nil {
			t.Fatalf("%s is no XML: %v", p.name, err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
}

func TestDecades(t *testing.T) {
	labels := func(low, high float64) string {
		var all []string
		for _, tick := range (decades{}).Ticks(low, high) {
			if tick.Label != "" {
				all = append(all, tick.Label)
			}
		}
		return strings.Join(all, " ")
	}
	for want, axis := range map[string][2]float64{
		"1 2 5 10 20 50 100 200 500 1,000": {1, 1000}, "0.1 0.2": {0.09, 0.3}, "1 10 100 1,000 10,000 100,000 1,000,000": {1, 1e6},
	} {
		if got := labels(axis[0], axis[1]); got != want {
			t.Errorf("from %v to %v: %s, want %s", axis[0], axis[1], got, want)
		}
	}
}
