// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// exampleResult has two rounds, of which the second ran on a busy machine.
func exampleResult() *result {
	cellOf := func(size string, bytes int, p protocol, gatewayRate float64) cellResult {
		return cellResult{Size: size, BodyBytes: bytes, Callers: 16, Protocol: p, Peers: []peerResult{
			{Peer: peerReverseProxy, Idle: 10e6, Rounds: []round{{Rate: 1000, CPU: 100}, {Rate: 100, CPU: 1e6}}},
			{Peer: peerBaseline, Idle: 20e6, Rounds: []round{{Rate: 720, CPU: 200}, {Rate: 72, CPU: 2e6}}},
			{Peer: peerGateway, Idle: 20e6, Rounds: []round{
				{Rate: gatewayRate, CPU: 200, Peak: 180e6}, {Rate: gatewayRate / 10, CPU: 2e6, Peak: 100e6},
			}},
		}}
	}
	return &result{
		Rounds: 2,
		Cells: []cellResult{
			cellOf("S", 4e3, http1Protocol, 900), cellOf("M", 250e3, http1Protocol, 700),
			cellOf("L", 5e6, http1Protocol, 600),
		},
		FanOut:     &fanOutResult{Handlers: 10, AllToOne: 1.6},
		Conversion: &conversionResult{SameToPlain: 1.02, ConvertedToPlain: 3.2},
	}
}

func TestBars(t *testing.T) {
	r := exampleResult()
	r.Bars = r.bars()
	var got []string
	for _, b := range r.Bars {
		got = append(got, formatBar(b.Value)+" "+b.Verdict)
	}
	want := []string{
		"0.900 PASS", "0.700 BELOW", "0.600 PASS", // 0.8, 0.8 and 0.6 are the least.
		"1.600 BELOW", // 1.5 is the most.
		"1.020 PASS",  // 1.1 is the most.
		"3.200 BELOW", // 3 is the most.
		"2.000 PASS",  // (180 MB - 20 MB) / (16 * 5 MB), 3 is the most.
		"- not measured",
		"1.250 PASS", "0.972 PASS", "0.833 BELOW", // 0.97 of the baseline, 720, is the least.
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	var b strings.Builder
	if missed, err := r.writeBars(&b); err != nil || !missed {
		t.Errorf("writeBars says missed %v, %v; four bars are", missed, err)
	}
	r.Bars = r.Bars[:1]
	if missed, err := r.writeBars(&b); err != nil || missed {
		t.Errorf("writeBars says missed %v, %v; none is", missed, err)
	}
}

func TestReportIsAtMost120ColumnsWide(t *testing.T) {
	r := exampleResult()
	r.Bars = r.bars()
	var b strings.Builder
	for _, c := range r.Cells {
		if err := c.writeCell(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.FanOut.writeFanOut(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := r.writeBars(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
			t.Errorf("line has %d columns:\n%s", n, line)
		}
	}
}
