// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() *Result {
	peers := func() []Peer {
		return []Peer{
			{Peer: Direct, Rounds: Rounds{{Rate: 9000, P50: 10, P99: 20, CPU: 5}, {Rate: 8000, P50: 11, P99: 21, CPU: 5}}},
			{Peer: "ReverseProxy", Idle: 1e6, Rounds: Rounds{
				{Rate: 1000, P50: 100, P99: 200, CPU: 50, Peak: 2e6}, {Rate: 100, P50: 1e3, P99: 2e6, CPU: 60, Peak: 3e6},
			}},
			{Peer: Gateway, Idle: 5e6, Rounds: Rounds{
				{Rate: 500, P50: 200, P99: 300, CPU: 75, Peak: 9e6}, {Rate: 80, P50: 1e3, P99: 2e6, CPU: 60, Peak: 8e6},
			}},
		}
	}
	return &Result{
		Cells: []*Cell{
			{Size: "S", BodyBytes: 3707, Callers: 16, Protocol: "h1", Measured: 2, Steady: true, Peers: peers()},
			{Size: "M", BodyBytes: 250e3, Callers: 1, Protocol: "h2", GRPC: true, Measured: 10, Peers: peers()},
		},
		Handlers:   []*Handler{{Handlers: 100, Idle: 60e6, Beside: Rounds{{CPU: 210}}, Quick: Rounds{{CPU: 11e3}}, Slow: Rounds{{P50: 30e3}}}},
		FanOuts:    []*FanOut{{Handlers: 10, HandlerMilliseconds: 20, Times: 5, One: 20.5, All: 21, AllToOnes: []float64{1, 1.02, 1.1}}},
		Conversion: &Conversion{BodyBytes: 3707, Callers: 16, Plain: 100, Same: 101, Converted: 300, ConvertedToPlain: []float64{3}},
		Chain: &Chain{
			Steps: 5, StepMilliseconds: 20, BodyBytes: 250e3, Patches: 49, One: Rounds{{P50: 800, CPU: 500}}, Quick: Rounds{{P50: 3e3, CPU: 2250}},
			Slow: Rounds{{P50: 105e3, CPU: 4e3}},
		},
		Rules: &Rules{Rules: 1000, Matching: 5, Callers: 16, None: Rounds{{P50: 900, CPU: 80}}, All: Rounds{{P50: 2e3, CPU: 170}}},
		Bars: []Bar{
			{Name: "a", Value: 1.5, Low: 1, High: 2, Limit: 1.1, Verdict: Pass}, {Name: "b", Limit: 3, AtMost: true, Verdict: Unmeasured},
			{Name: "c", Limit: 3, Verdict: Unmeasured},
		},
	}
}

func TestTables(t *testing.T) {
	r := example()
	other := &Result{Bars: []Bar{
		{Name: "a", Verdict: Unmeasured}, {Name: "b", Value: 4, Low: 4, High: 4, Limit: 3, AtMost: true, Verdict: Below},
	}}
	got := Cells(r.Cells...) + Bars(r, other) + HandlerTable(r.Handlers...) + FanOutTable(r.FanOuts...) + r.Conversion.Table() + r.Chain.Table() + r.Rules.Table()
	lines := strings.Split(got, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	for _, want := range []string{
		"| S, 3.71 KB | 16, HTTP/1.1 | direct | 8500 | 10 µs | 20 µs | 5 µs | 0 KB | 0.03 (0.01–0.06) | 13.50 (12.00–15.00) |",
		"| | | ReverseProxy | 550 | 550 µs | 1.0 s | 55 µs | 2.0 MB | 0.65 (0.50–0.80) | 1.25 (1.00–1.50) |",
		"| | | gateway | 290 | 600 µs | 1.0 s | 68 µs | 4.0 MB | | |",
		"| M, 250 KB | 1, HTTP/2 to gRPC; 10 rounds do not agree | direct | 8500 | 10 µs | 20 µs | 5 µs | 0 KB | 0.03 (0.01–0.06) | 13.50 (12.00–15.00) |",
		"| a | 1.50 (1.00–2.00) | ≥ 1.10 | PASS |", // measured in the first part
		"| b | 4.00 | ≤ 3.00 | BELOW |", // measured in the second one
		"Bars that were not measured, because their peers, parts or cells were left out: 1.",
		"| the chain | 3.0 ms | 2.2 ms | 4.50 times the CPU of one |",
		"| the chain, of handlers of 20 ms | 105 ms | 4.0 ms | 1.05 times theirs |",
		"| 100 | 60.0 MB | 210 µs | 11.0 ms | 110 µs | 30.0 ms |",
		"| 10 of 20 ms, medians of 5 | 20.5 ms | 21.0 ms, 1.02 (1.00–1.10) | 0.0 ms, | – |",
		"| 1000, of which 5 match | 2.0 ms | 170 µs | 90.00 |",
		"| v1beta1, and gets it | 300 µs | 3.00 |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if got, want := r.Cells[1].String(), "M, 1 caller, HTTP/2 to gRPC"; got != want {
		t.Errorf("the second cell is %s, want %s", got, want)
	}
}

func TestTableIsAligned(t *testing.T) {
	got := Table([]string{"µ", "long"}, [][]string{{"abc", "≥"}})
	if want := "| µ   | long |\n| --- | ---- |\n| abc | ≥    |\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadsWhatIsWritten(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, "cells"); err == nil {
		t.Error("measurements that are missing are read")
	}
	first, second := example(), &Result{Machine: Machine{Processors: 2}}
	for name, r := range map[string]*Result{"cells.json": first, "cells2.json": second, "other.json": {}} {
		if err := r.Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(dir, "cells")
	if diff := cmp.Diff([]*Result{first, second}, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		values []float64
		want   float64
	}{
		"None": {reason: "nothing was measured", want: 0},
		"Odd":  {reason: "the middle one, whatever the order", values: []float64{9, 1, 5}, want: 5},
		"Even": {reason: "between the two middle ones", values: []float64{9, 1, 5, 2}, want: 3.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Median(tc.values); got != tc.want {
				t.Errorf("%s: Median(%v) = %v, want %v", tc.reason, tc.values, got, tc.want)
			}
		})
	}

	values := []float64{3, 1, 2}
	Median(values)
	if values[0] != 3 {
		t.Errorf("Median changed the order of its values to %v: they are paired by round", values)
	}
}

func TestRatios(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		a, b   []float64
		want   float64
	}{
		"None": {reason: "nothing was measured", want: 0},
		"ByRound": {
			reason: "rounds are paired: the medians alone would give 1",
			a:      []float64{1, 2, 9}, b: []float64{2, 4, 1}, want: 0.5,
		},
		"NoneOfB":  {reason: "a round without a divisor has no ratio", a: []float64{1, 2}, b: []float64{0, 4}, want: 0.5},
		"Unpaired": {reason: "a round that only one of them has is left out", a: []float64{1, 2, 3}, b: []float64{2}, want: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Median(Ratios(tc.a, tc.b)); got != tc.want {
				t.Errorf("%s: the median of Ratios(%v, %v) = %v, want %v", tc.reason, tc.a, tc.b, got, tc.want)
			}
		})
	}
}
