// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// bar is a measured value with the project's limit.
type bar struct {
	Name string `json:"name"`
	// Value is the median, Low and High are the lowest and the highest of the rounds.
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Limit  float64 `json:"limit"`
	AtMost bool    `json:"atMost"`
	// Verdict is PASS, BELOW, or "not measured".
	Verdict string `json:"verdict"`
}

const (
	verdictPass       = "PASS"
	verdictBelow      = "BELOW"
	verdictUnmeasured = "not measured"
)

// newBar judges the median of the values of the rounds, which are none if the bar was not measured.
func newBar(name string, values []float64, limit float64, atMost bool) bar {
	b := bar{Name: name, Limit: limit, AtMost: atMost, Verdict: verdictUnmeasured}
	if len(values) == 0 {
		return b
	}
	b.Value, b.Low, b.High, b.Verdict = median(values), slices.Min(values), slices.Max(values), verdictBelow
	if atMost && b.Value <= limit || !atMost && b.Value >= limit {
		b.Verdict = verdictPass
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
    go test -run '^$' -bench '^Benchmark(Decode|Valid|Scan)$' -count 6 ./internal/codec
  2,000 files: a change of one takes effect within 100 ms, with 50 ms of CPU, most of which is reading them
    go test -run '^$' -bench '^BenchmarkNext$' -count 6 ./controllers/manifest
`

// bars compares what was measured with the limits. A cell that was not selected leaves its bar unmeasured.
func (r *result) bars() []bar {
	var bs []bar
	rates := func(peer string, p protocol) {
		for i, size := range sizes {
			bs = append(bs, r.ratioBar("requests per second, gateway / "+peer,
				cell{payload: payload{size: size}, callers: severalCallers, protocol: p}, peer, rateOf, rateLimits[peer][i], false))
		}
	}
	rates(peerReverseProxy, http1Protocol)
	rates(peerReverseProxy, http2Protocol)
	rates(peerEnvoy, http1Protocol)
	rates(peerNginx, http1Protocol)
	for i, size := range sizes {
		bs = append(bs, r.ratioBar("p50, gateway / ReverseProxy", cell{payload: payload{size: size}, callers: 1, protocol: http1Protocol},
			peerReverseProxy, p50Of, latencyLimits[i], true))
	}
	many := cell{payload: payload{size: "S"}, callers: manyCallers, protocol: http1Protocol}
	bs = append(bs, r.ratioBar("requests per second, gateway / ReverseProxy", many, peerReverseProxy, rateOf, 1, false),
		r.ratioBar("p99, gateway / ReverseProxy", many, peerReverseProxy, p99Of, 1, true))
	for i, limit := range []float64{2, 10} {
		bs = append(bs, r.ratioBar("req/s, gateway / Envoy's transcoder",
			cell{payload: payload{size: sizes[i]}, callers: severalCallers, protocol: http1Protocol, grpc: true}, peerEnvoy, rateOf, limit, false))
	}
	bs = append(bs, r.fanOutBars()...)
	bs = append(bs, r.memoryBars()...)
	var same, converted []float64
	if r.Conversion != nil {
		same, converted = r.Conversion.SameToPlain, r.Conversion.ConvertedToPlain
	}
	bs = append(bs,
		newBar("gateway CPU of a call that needs no conversion / one without a policy", same, 1.1, true),
		newBar("gateway CPU of a call with a converted Cluster / one without", converted, 4, true))
	return append(bs, r.baselineBars()...)
}

func rateOf(r round) float64 { return r.Rate }
func p50Of(r round) float64  { return r.P50 }
func p99Of(r round) float64  { return r.P99 }
func cpuOf(r round) float64  { return r.CPU }

// ratioBar judges a figure of the gateway divided by that of a peer, in a cell.
func (r *result) ratioBar(name string, in cell, peer string, figure func(round) float64, limit float64, atMost bool) bar {
	var values []float64
	if c := r.cell(in); c != nil {
		values = c.ratios(peerGateway, peer, figure)
	}
	return newBar(name+": "+in.String(), values, limit, atMost)
}

// fanOutBars has a bar for each number of handlers. A few may take 5 % longer than one, and many 15 %.
func (r *result) fanOutBars() []bar {
	if len(r.FanOuts) == 0 {
		return []bar{newBar("time of the slow handlers / one of them", nil, 1.05, true)}
	}
	var bs []bar
	for _, f := range r.FanOuts {
		limit := 1.05
		if f.Handlers > 10 {
			limit = 1.15
		}
		bs = append(bs, newBar(fmt.Sprintf("time of %d handlers of %v / one of them", f.Handlers, slowTime), f.AllToOnes, limit, true))
	}
	return bs
}

func (r *result) memoryBars() []bar {
	var bs []bar
	for _, m := range []struct {
		protocol protocol
		grpc     bool
		limit    float64
	}{{http1Protocol, false, 1.6}, {http2Protocol, false, 1.6}, {http1Protocol, true, 3}} {
		in := cell{payload: payload{size: "L"}, callers: severalCallers, protocol: m.protocol, grpc: m.grpc}
		var values []float64
		if c := r.cell(in); c != nil && c.peer(peerGateway) != nil {
			values = []float64{c.memory(peerGateway)}
		}
		bs = append(bs, newBar("peak RSS above idle / bodies in flight: "+in.String(), values, m.limit, true))
	}
	return bs
}

// baselineBars compares the gateway with the baseline in every cell, if there is one.
func (r *result) baselineBars() []bar {
	const least = 0.97
	var bs []bar
	for _, c := range r.Cells {
		if c.peer(peerBaseline) != nil {
			bs = append(bs, r.ratioBar("requests per second, gateway / baseline", c.cell(), peerBaseline, rateOf, least, false))
		}
	}
	return bs
}

// writeBars prints the bars, and reports whether one was missed.
func (r *result) writeBars(w io.Writer) (missed bool, err error) {
	const row = "  %-71s %8s %13s %8s  %s\n"
	var b strings.Builder
	fmt.Fprintf(&b, row, "Bar", "measured", "min-max", "limit", "verdict")
	unmeasured := 0
	for _, x := range r.Bars {
		if x.Verdict == verdictUnmeasured {
			unmeasured++
			continue
		}
		sign := ">="
		if x.AtMost {
			sign = "<="
		}
		missed = missed || x.Verdict == verdictBelow
		low := ""
		if x.Low != x.High {
			low = fmt.Sprintf("%.2f-%.2f", x.Low, x.High)
		}
		fmt.Fprintf(&b, row, x.Name, formatBar(x.Value), low, fmt.Sprintf("%s %.2f", sign, x.Limit), x.Verdict)
	}
	if unmeasured > 0 {
		fmt.Fprintf(&b, "  %d bars were not measured: their peers, parts or cells were left out.\n", unmeasured)
	}
	b.WriteString(elsewhere)
	_, err = io.WriteString(w, b.String())
	return missed, err
}

// formatBar formats with one digit more than the limits, so that a narrowly missed bar does not look met.
func formatBar(v float64) string {
	if v <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}
