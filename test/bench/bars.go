// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/hookgate/hookgate/test/bench/report"
)

// newBar judges the median of the values of the rounds, which are none if the bar was not measured.
func newBar(name string, values []float64, limit float64, atMost bool) report.Bar {
	b := report.Bar{Name: name, Limit: limit, AtMost: atMost, Verdict: report.Unmeasured}
	if len(values) == 0 {
		return b
	}
	b.Value, b.Low, b.High, b.Verdict = report.Median(values), slices.Min(values), slices.Max(values), report.Below
	if atMost && b.Value <= limit || !atMost && b.Value >= limit {
		b.Verdict = report.Pass
	}
	return b
}

// The limits of the bars for the sizes S, M and L.
var (
	sizes         = [3]string{"S", "M", "L"}
	rateLimits    = map[string][3]float64{peerReverseProxy: {1.1, 1, 1}, peerEnvoy: {0.85, 0.9, 0.9}, peerNginx: {0.55, 0.85, 0.9}}
	latencyLimits = [3]float64{1, 1.1, 1.15}
)

// severalCallers is the number of callers of most bars, and manyCallers that of two.
const (
	severalCallers = 16
	manyCallers    = 1000
)

// elsewhere are the bars that Go's benchmarks measure.
const elsewhere = `
Bars that Go's benchmarks measure:
  codec / json.Valid: at least 3 from JSON to protobuf (Decode), 6 for the scan alone
    go test -run '^$' -bench '^Benchmark(Decode|Valid|Scan)$' -count 6 ./internal/contract/codec
  2,000 files: a change of one takes effect within 100 ms, with 50 ms of CPU, most of which is reading them
    go test -run '^$' -bench '^BenchmarkNext$' -count 6 ./internal/sources/manifest
`

// barsOf compares what was measured with the limits. A cell that was not selected leaves its bar unmeasured.
func barsOf(r *report.Result) []report.Bar {
	var bs []report.Bar
	rates := func(peer string, p protocol) {
		for i, size := range sizes {
			bs = append(bs, ratioBar(r, "requests per second, gateway / "+peer,
				cell{payload: payload{size: size}, callers: severalCallers, protocol: p}, peer, report.Rate, rateLimits[peer][i], false))
		}
	}
	rates(peerReverseProxy, http1Protocol)
	rates(peerReverseProxy, http2Protocol)
	rates(peerEnvoy, http1Protocol)
	rates(peerNginx, http1Protocol)
	for i, size := range sizes {
		bs = append(bs, ratioBar(r, "p50, gateway / ReverseProxy", cell{payload: payload{size: size}, callers: 1, protocol: http1Protocol},
			peerReverseProxy, report.P50, latencyLimits[i], true))
	}
	many := cell{payload: payload{size: "S"}, callers: manyCallers, protocol: http1Protocol}
	bs = append(bs, ratioBar(r, "requests per second, gateway / ReverseProxy", many, peerReverseProxy, report.Rate, 1, false),
		ratioBar(r, "p99, gateway / ReverseProxy", many, peerReverseProxy, report.P99, 1, true))
	for i, limit := range []float64{2, 10} {
		bs = append(bs, ratioBar(r, "req/s, gateway / Envoy's transcoder",
			cell{payload: payload{size: sizes[i]}, callers: severalCallers, protocol: http1Protocol, grpc: true}, peerEnvoy, report.Rate, limit, false))
	}
	bs = append(bs, fanOutBars(r)...)
	bs = append(bs, memoryBars(r)...)
	var same, converted []float64
	if r.Conversion != nil {
		same, converted = r.Conversion.SameToPlain, r.Conversion.ConvertedToPlain
	}
	bs = append(bs,
		newBar("gateway CPU of a call that needs no conversion / one without a policy", same, 1.1, true),
		newBar("gateway CPU of a call with a converted Cluster / one without", converted, 4, true))
	bs = append(bs, chainBars(r)...)
	bs = append(bs, ruleBar(r))
	return append(bs, baselineBars(r)...)
}

// chainBars judge a chain of slow handlers by the time that these take, and one of quick handlers by the CPU time of as
// many calls.
func chainBars(r *report.Result) []report.Bar {
	var time, cpu []float64
	if c := r.Chain; c != nil {
		time, cpu = c.TimeToSteps(), c.CPUToOnes()
	}
	return []report.Bar{
		newBar(fmt.Sprintf("time of a chain of %d handlers of %v, M / their time", chainSteps, slowTime), time, 1.15, true),
		newBar(fmt.Sprintf("gateway CPU of a chain of %d handlers, M / a call to one", chainSteps), cpu, chainSteps, true),
	}
}

// ruleBar judges what a call costs more, in microseconds, with many HookRules of which a few match.
func ruleBar(r *report.Result) report.Bar {
	var more []float64
	if r.Rules != nil {
		more = r.Rules.CPUMore()
	}
	return newBar(fmt.Sprintf("µs of gateway CPU of a call with %d rules, %d of which match - without", allRules, matchingRules), more, 100, true)
}

// ratioBar judges a figure of the gateway divided by that of a peer, in a cell.
func ratioBar(
	r *report.Result, name string, in cell, peer string, figure report.Figure, limit float64, atMost bool,
) report.Bar {
	var values []float64
	if c := measured(r, in); c != nil {
		values = c.Ratios(peer, figure)
	}
	return newBar(name+": "+in.String(), values, limit, atMost)
}

// measured returns the result of a cell, by size, callers and protocols, or nil if it was not selected.
func measured(r *report.Result, in cell) *report.Cell {
	i := slices.IndexFunc(r.Cells, func(c *report.Cell) bool { return c.String() == in.String() })
	if i < 0 {
		return nil
	}
	return r.Cells[i]
}

// fanOutBars has a bar for each number of handlers. A few may take 5 % longer than one, and many 15 %.
func fanOutBars(r *report.Result) []report.Bar {
	var bs []report.Bar
	for _, f := range r.FanOuts {
		limit := 1.05
		if f.Handlers > 10 {
			limit = 1.15
		}
		bs = append(bs, newBar(fmt.Sprintf("time of %d handlers of %v / one of them", f.Handlers, slowTime), f.AllToOnes, limit, true))
	}
	return bs
}

// memoryBars judge the gateway's highest resident memory above idle, over the bytes of the bodies in flight.
func memoryBars(r *report.Result) []report.Bar {
	var bs []report.Bar
	for _, m := range []struct {
		protocol protocol
		grpc     bool
		limit    float64
	}{{http1Protocol, false, 1.6}, {http2Protocol, false, 1.6}, {http1Protocol, true, 3}} {
		in := cell{payload: payload{size: "L"}, callers: severalCallers, protocol: m.protocol, grpc: m.grpc}
		var values []float64
		if c := measured(r, in); c != nil && c.Of(peerGateway) != nil {
			values = []float64{float64(c.Of(peerGateway).AboveIdle()) / float64(c.Callers*c.BodyBytes)}
		}
		bs = append(bs, newBar("peak RSS above idle / bodies in flight: "+in.String(), values, m.limit, true))
	}
	return bs
}

// baselineBars compares the gateway with the baseline in every cell, if there is one.
func baselineBars(r *report.Result) []report.Bar {
	const least = 0.97
	var bs []report.Bar
	for _, c := range r.Cells {
		if c.Of(peerBaseline) != nil {
			name := "requests per second, gateway / baseline: " + c.String()
			bs = append(bs, newBar(name, c.Ratios(peerBaseline, report.Rate), least, false))
		}
	}
	return bs
}

// missed reports whether one of the bars is.
func missed(bars []report.Bar) bool {
	return slices.ContainsFunc(bars, func(b report.Bar) bool { return b.Verdict == report.Below })
}
