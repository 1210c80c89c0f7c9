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

	"github.com/hookgate/hookgate/test/bench/report"
)

func example() *report.Result {
	peers := func(factor float64) []report.Peer {
		return []report.Peer{
			{Peer: "direct", Rounds: report.Rounds{{Rate: 9000, P50: 10, P99: 20, CPU: 5}, {Rate: 8000, P50: 11, P99: 21, CPU: 5}}},
			{Peer: "ReverseProxy", Idle: 1e6, Rounds: report.Rounds{{Rate: 1000, P50: 100, P99: 200, CPU: 50, Peak: 2e6}, {Rate: 100, P50: 1e3, P99: 2e6, CPU: 60, Peak: 3e6}}},
			{Peer: report.Gateway, Idle: 5e6, Rounds: report.Rounds{{Rate: 500 * factor, P50: 200, P99: 300, CPU: 75, Peak: 9e6}, {Rate: 80, P50: 1e3, P99: 2e6, CPU: 60, Peak: 8e6}}},
		}
	}
	return &report.Result{
		Cells: []*report.Cell{
			{Size: "S", BodyBytes: 3707, Callers: 16, Protocol: "h1", Measured: 2, Steady: true, Peers: peers(1)},
			{Size: "M", BodyBytes: 250e3, Callers: 100, Protocol: "h1", GRPC: true, Measured: 10, Peers: peers(0.5)},
		},
		Handlers: []*report.Handler{
			{Handlers: 1, Beside: report.Rounds{{CPU: 200}}, Quick: report.Rounds{{CPU: 200}}, Slow: report.Rounds{{P50: 21e3}}},
			{Handlers: 100, Beside: report.Rounds{{CPU: 210}}, Quick: report.Rounds{{CPU: 11e3}}, Slow: report.Rounds{{P50: 30e3}}},
		},
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
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance", "README.md"))
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
			if !strings.Contains(string(page), "("+p.name+".svg)") {
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
		if _, err := draw(&report.Result{}); !errors.Is(err, errNothing) {
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

func TestFleetCurves(t *testing.T) {
	cell := func(phase string, clusters int) *report.Cell {
		return &report.Cell{Size: phase, Callers: clusters, Peers: []report.Peer{
			{Peer: report.Direct, Rounds: report.Rounds{{Rate: 2000, P99: 24e3}}}, {Peer: "2 replicas", Rounds: report.Rounds{{Rate: 1000, P99: 30e3}}},
		}}
	}
	r := &report.Result{Cells: []*report.Cell{cell("steady", 1000), cell("create", 1000), cell("steady", 10000), cell("restart", 1000), cell("restart", 10000)}}
	pictures, err := fleetCurves(r)
	if err != nil || len(pictures) != 2 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		if text := checkXML(t, p); !strings.Contains(text, "2 replicas") || !strings.Contains(text, "10,000") {
			t.Errorf("%s: the texts are %s", p.name, text)
		}
		if !strings.Contains(string(page), "("+p.name+".svg)") {
			t.Errorf("the page does not show the curve %s", p.name)
		}
	}
	if _, err := fleetCurves(&report.Result{Cells: r.Cells[:3]}); !errors.Is(err, errNothing) {
		t.Errorf("without restarts: %v", err)
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
