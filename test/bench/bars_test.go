// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/test/bench/report"
)

// exampleResult has two rounds, of which the second ran on a busy machine.
func exampleResult() *report.Result {
	cellOf := func(size string, bytes int, p protocol, gatewayRate float64) *report.Cell {
		return &report.Cell{Size: size, BodyBytes: bytes, Callers: 16, Protocol: string(p), Measured: 2, Peers: []report.Peer{
			{Peer: peerReverseProxy, Idle: 10e6, Rounds: report.Rounds{{Rate: 1000, CPU: 100}, {Rate: 100, CPU: 1e6}}},
			{Peer: peerBaseline, Idle: 20e6, Rounds: report.Rounds{{Rate: 720, CPU: 200}, {Rate: 72, CPU: 2e6}}},
			{Peer: peerGateway, Idle: 20e6, Rounds: report.Rounds{
				{Rate: gatewayRate, CPU: 200, Peak: 148e6}, {Rate: gatewayRate / 10, CPU: 2e6, Peak: 100e6},
			}},
		}}
	}
	toGRPC := cellOf("S", 4e3, http1Protocol, 2000)
	toGRPC.GRPC, toGRPC.Peers[0].Peer, toGRPC.Peers[1].Peer = true, peerEnvoy, "another"
	one := cellOf("S", 4e3, http1Protocol, 900)
	one.Callers, one.Peers[0].Rounds[0].P50, one.Peers[2].Rounds[0].P50 = 1, 100, 101
	return &report.Result{
		Rounds: 2,
		Cells: []*report.Cell{
			cellOf("S", 4e3, http1Protocol, 1100), cellOf("M", 250e3, http1Protocol, 990),
			cellOf("L", 5e6, http1Protocol, 1000), one, toGRPC,
		},
		FanOuts:    []*report.FanOut{{Handlers: 10, AllToOnes: []float64{1, 1.06, 2}}, {Handlers: 11, AllToOnes: []float64{1.06}}},
		Conversion: &report.Conversion{SameToPlain: []float64{1.02}, ConvertedToPlain: []float64{4.6, 3.4, 4.01}},
		Chain: &report.Chain{
			Steps: 5, StepMilliseconds: 20, One: report.Rounds{{CPU: 500}, {CPU: 1e6}}, Quick: report.Rounds{{CPU: 2500}, {CPU: 5.1e6}},
			Slow: report.Rounds{{P50: 115e3}, {P50: 115e3}},
		},
		Rules: &report.Rules{None: report.Rounds{{CPU: 100}, {CPU: 1e6}}, All: report.Rounds{{CPU: 200}, {CPU: 1e6 + 102}}},
	}
}

func TestBars(t *testing.T) {
	r := exampleResult()
	r.Bars = barsOf(r)
	got := make(map[string]string)
	for _, b := range r.Bars {
		if b.Verdict != report.Unmeasured {
			got[b.Name] = fmt.Sprintf("%.3f %s", b.Value, b.Verdict)
		}
	}
	want := map[string]string{
		"requests per second, gateway / ReverseProxy: S, 16 callers, HTTP/1.1":    "1.100 PASS", // at least 1.1
		"requests per second, gateway / ReverseProxy: M, 16 callers, HTTP/1.1":    "0.990 BELOW",
		"requests per second, gateway / ReverseProxy: L, 16 callers, HTTP/1.1":    "1.000 PASS",
		"p50, gateway / ReverseProxy: S, 1 caller, HTTP/1.1":                      "1.010 BELOW", // at most 1
		"req/s, gateway / Envoy's transcoder: S, 16 callers, HTTP/1.1 to gRPC":    "2.000 PASS",
		"time of a chain of 5 handlers of 20ms, M / their time":                   "1.150 PASS",
		"gateway CPU of a chain of 5 handlers, M / a call to one":                 "5.050 BELOW",
		"µs of gateway CPU of a call with 1000 rules, 5 of which match - without": "101.000 BELOW",
		"time of 10 handlers of 20ms / one of them":                               "1.060 BELOW", // at most 1.05
		"time of 11 handlers of 20ms / one of them":                               "1.060 PASS",  // at most 1.15
		"peak RSS above idle / bodies in flight: L, 16 callers, HTTP/1.1":         "1.600 PASS",  // (148 MB - 20 MB) / (16 * 5 MB)
		"gateway CPU of a call that needs no conversion / one without a policy":   "1.020 PASS",
		"gateway CPU of a call with a converted Cluster / one without":            "4.010 BELOW",
		"requests per second, gateway / baseline: S, 16 callers, HTTP/1.1":        "1.528 PASS",
		"requests per second, gateway / baseline: M, 16 callers, HTTP/1.1":        "1.375 PASS",
		"requests per second, gateway / baseline: L, 16 callers, HTTP/1.1":        "1.389 PASS",
		"requests per second, gateway / baseline: S, 1 caller, HTTP/1.1":          "1.250 PASS",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	slow := exampleResult()
	slow.Cells = slow.Cells[:1]
	slow.Cells[0].Peers[2].Rounds = report.Rounds{{Rate: 698}} // 0.97 of the baseline is 698.4
	if bs := baselineBars(slow); len(bs) != 1 || bs[0].Verdict != report.Below {
		t.Errorf("a gateway that is 3.1 %% slower than the baseline: %+v", bs)
	}
	if !missed(r.Bars) || missed(r.Bars[:1]) {
		t.Error("some of the bars are missed, and the first one is not")
	}
}

func TestRoundsSettle(t *testing.T) {
	cellOf := func(gateway ...float64) *report.Cell {
		c := &report.Cell{Peers: []report.Peer{{Peer: peerDirect}, {Peer: peerReverseProxy}, {Peer: peerGateway}}}
		for i, rate := range gateway {
			c.Peers[0].Rounds = append(c.Peers[0].Rounds, report.Round{Rate: float64(1 + i*i)}) // the ceiling may vary
			c.Peers[1].Rounds = append(c.Peers[1].Rounds, report.Round{Rate: 100})
			c.Peers[2].Rounds = append(c.Peers[2].Rounds, report.Round{Rate: rate})
		}
		return c
	}
	for name, tc := range map[string]struct {
		reason string
		cell   *report.Cell
		want   int
	}{
		"Within":       {reason: "14 % of the median are allowed", cell: cellOf(94, 100, 108), want: 3},
		"BeyondIt":     {reason: "16 % are not, and all rounds stay", cell: cellOf(92, 100, 108), want: 3},
		"AfterABusy":   {reason: "the rounds before the last three do not count", cell: cellOf(10, 500, 100, 101, 99), want: 3},
		"StillBusy":    {reason: "the last one does", cell: cellOf(100, 101, 99, 10), want: 4},
		"WithoutPeers": {reason: "nothing to compare with", cell: &report.Cell{Peers: []report.Peer{{Peer: peerGateway, Rounds: make(report.Rounds, 4)}}}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			steady := settle(tc.cell, 3)
			if got := len(tc.cell.Peers[0].Rounds); got != tc.want {
				t.Errorf("%s: %d rounds are left, want %d", tc.reason, got, tc.want)
			}
			if want := name != "BeyondIt" && name != "StillBusy"; steady != want {
				t.Errorf("%s: steady is %t", tc.reason, steady)
			}
		})
	}
}
