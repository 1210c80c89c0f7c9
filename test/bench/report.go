// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// result holds all measurements of a run, as --json writes it.
type result struct {
	Rounds          int           `json:"rounds"`
	DurationSeconds float64       `json:"secondsPerRound"`
	Cells           []cellResult  `json:"cells"`
	FanOut          *fanOutResult `json:"fanOut,omitempty"`
	// Conversion is measured with the size S.
	Conversion *conversionResult `json:"conversion,omitempty"`
	Bars       []bar             `json:"bars,omitempty"`
}

type cellResult struct {
	Size      string       `json:"size"`
	BodyBytes int          `json:"bodyBytes"`
	Callers   int          `json:"callers"`
	Protocol  protocol     `json:"protocol"`
	Peers     []peerResult `json:"peers"`
}

type peerResult struct {
	Peer string `json:"peer"`
	// Idle is the resident memory before any load, in bytes.
	Idle   int64   `json:"idleResidentBytes"`
	Rounds []round `json:"rounds"`
}

// fanOutResult has times in milliseconds, medians.
type fanOutResult struct {
	Handlers            int     `json:"handlers"`
	HandlerMilliseconds float64 `json:"handlerMilliseconds"`
	Times               int     `json:"times"`
	One                 float64 `json:"oneMilliseconds"`
	All                 float64 `json:"allMilliseconds"`
	Sequential          float64 `json:"sequentialMilliseconds"`
	AllToOne            float64 `json:"allToOne"`
	SequentialToOne     float64 `json:"sequentialToOne"`
}

// bar is a measured value with the project's limit.
type bar struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
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

func newBar(name string, value, limit float64, atMost bool) bar {
	b := bar{Name: name, Value: value, Limit: limit, AtMost: atMost, Verdict: verdictBelow}
	switch {
	case value <= 0:
		b.Verdict = verdictUnmeasured
	case atMost && value <= limit, !atMost && value >= limit:
		b.Verdict = verdictPass
	}
	return b
}

// bars compares what was measured with the limits. A cell that was not selected leaves its bar unmeasured.
func (r *result) bars() []bar {
	const callers = 16
	var bs []bar
	for _, want := range []struct {
		size  string
		limit float64
	}{{"S", 0.8}, {"M", 0.8}, {"L", 0.6}} {
		var ratio float64
		if c := r.cell(want.size, callers, http1Protocol); c != nil {
			ratio = c.ratio(peerGateway, peerReverseProxy, func(r round) float64 { return r.Rate })
		}
		name := fmt.Sprintf("requests per second, gateway / ReverseProxy: %s, %d callers, %s", want.size, callers,
			http1Protocol)
		bs = append(bs, newBar(name, ratio, want.limit, false))
	}
	var ratio float64
	handlers := "the slow handlers"
	if r.FanOut != nil {
		handlers, ratio = fmt.Sprintf("%d handlers of %v", r.FanOut.Handlers, slowTime), r.FanOut.AllToOne
	}
	bs = append(bs, newBar("time of "+handlers+" / one of them", ratio, 1.5, true))
	var same, converted float64
	if r.Conversion != nil {
		same, converted = r.Conversion.SameToPlain, r.Conversion.ConvertedToPlain
	}
	bs = append(bs,
		newBar("gateway CPU of a call that needs no conversion / one without a policy", same, 1.1, true),
		newBar("gateway CPU of a call with a converted Cluster / one without", converted, 3, true))
	for _, p := range []protocol{http1Protocol, http2Protocol} {
		var memory float64
		if c := r.cell("L", callers, p); c != nil {
			memory = c.memory(peerGateway)
		}
		name := fmt.Sprintf("peak RSS above idle / bodies in flight: L, %d callers, %s", callers, p)
		bs = append(bs, newBar(name, memory, 3, true))
	}
	return append(bs, r.baselineBars()...)
}

// baselineBars compares the gateway with the baseline in every cell, if there is one.
func (r *result) baselineBars() []bar {
	const least = 0.97
	var bs []bar
	for _, c := range r.Cells {
		if c.peer(peerBaseline) == nil {
			continue
		}
		ratio := c.ratio(peerGateway, peerBaseline, func(r round) float64 { return r.Rate })
		cell := cell{payload: payload{size: c.Size}, callers: c.Callers, protocol: c.Protocol}
		bs = append(bs, newBar("requests per second, gateway / baseline: "+cell.String(), ratio, least, false))
	}
	return bs
}

func (r *result) cell(size string, callers int, p protocol) *cellResult {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Size == size && c.Callers == callers && c.Protocol == p {
			return c
		}
	}
	return nil
}

func (c *cellResult) peer(name string) *peerResult {
	if i := slices.IndexFunc(c.Peers, func(p peerResult) bool { return p.Peer == name }); i >= 0 {
		return &c.Peers[i]
	}
	return nil
}

// ratio is the median over the rounds of a's figure divided by b's, 0 if one of them was not measured.
func (c *cellResult) ratio(a, b string, figure func(round) float64) float64 {
	pa, pb := c.peer(a), c.peer(b)
	if pa == nil || pb == nil {
		return 0
	}
	return medianRatio(pa.each(figure), pb.each(figure))
}

// memory is the peer's highest resident memory above idle, over the bytes of the bodies in flight.
func (c *cellResult) memory(name string) float64 {
	p := c.peer(name)
	if p == nil {
		return 0
	}
	return float64(p.aboveIdle()) / float64(c.Callers*c.BodyBytes)
}

func (p *peerResult) each(figure func(round) float64) []float64 {
	values := make([]float64, len(p.Rounds))
	for i, r := range p.Rounds {
		values[i] = figure(r)
	}
	return values
}

func (p *peerResult) aboveIdle() int64 {
	peak := p.Idle
	for _, r := range p.Rounds {
		peak = max(peak, r.Peak)
	}
	return peak - p.Idle
}

const rowFormat = "  %-12s %9s %15s %9s %9s %10s %9s %9s %9s %8s %9s"

const legend = `Medians of %d rounds of %v, in which the peers take turns.
  min-max     lowest and highest round of req/s: how far to trust the median
  CPU/call    user and system time of the peer's own process; the extension's is the row "direct"
  RSS, peak+  resident memory behind a round, and its peak above what it was before any load
  conns       connections that the extension accepts, each with a handshake, per call
  gw rate     gateway's req/s / this peer's: more is better
  gw CPU      gateway's CPU/call / this peer's: less is better, and less noisy than rates

`

// writeCell prints one cell's rows.
func (c *cellResult) writeCell(w io.Writer) error {
	noun := "callers"
	if c.Callers == 1 {
		noun = "caller"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, %d %s, %s\n", c.Size, formatBytes(int64(c.BodyBytes)), c.Callers, noun, c.Protocol)
	fmt.Fprintf(&b, rowFormat+"\n",
		"peer", "req/s", "min-max", "p50", "p99", "CPU/call", "RSS", "peak+", "conns", "gw rate", "gw CPU")
	for _, p := range c.Peers {
		rate := func(r round) float64 { return r.Rate }
		cpu := func(r round) float64 { return r.CPU }
		rates := p.each(rate)
		rateRatio, cpuRatio := "", ""
		if p.Peer != peerGateway {
			rateRatio = formatRatio(c.ratio(peerGateway, p.Peer, rate))
			cpuRatio = formatRatio(c.ratio(peerGateway, p.Peer, cpu))
		}
		row := fmt.Sprintf(rowFormat, p.Peer, formatRate(median(rates)),
			formatRate(slices.Min(rates))+"-"+formatRate(slices.Max(rates)),
			formatMicroseconds(median(p.each(func(r round) float64 { return r.P50 }))),
			formatMicroseconds(median(p.each(func(r round) float64 { return r.P99 }))),
			formatMicroseconds(median(p.each(cpu))),
			formatBytes(int64(median(p.each(func(r round) float64 { return float64(r.Resident) })))),
			formatBytes(p.aboveIdle()), formatConnections(median(p.each(func(r round) float64 { return r.Connections }))), rateRatio, cpuRatio)
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// writeFanOut prints the fan-out's rows.
func (f *fanOutResult) writeFanOut(w io.Writer) error {
	_, err := fmt.Fprintf(w, `Fan-out: a lifecycle call to handlers that take %.0f ms each, medians of %d
  one handler, through the gateway               %8.1f ms
  %d handlers, aggregated by the gateway         %8.1f ms  %6.2f times one
  %d handlers, called directly and in sequence   %8.1f ms  %6.2f times one, as Cluster API's own client does

`, f.HandlerMilliseconds, f.Times, f.One, f.Handlers, f.All, f.AllToOne, f.Handlers, f.Sequential, f.SequentialToOne)
	return err
}

// writeBars prints the bars, and reports whether one was missed.
func (r *result) writeBars(w io.Writer) (missed bool, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-80s %9s %10s  %s\n", "Bar", "measured", "limit", "verdict")
	for _, x := range r.Bars {
		sign := ">="
		if x.AtMost {
			sign = "<="
		}
		missed = missed || x.Verdict == verdictBelow
		fmt.Fprintf(&b, "  %-78s %9s %10s  %s\n", x.Name, formatBar(x.Value), fmt.Sprintf("%s %.2f", sign, x.Limit),
			x.Verdict)
	}
	_, err = io.WriteString(w, b.String())
	return missed, err
}

func (r *result) writeJSON(file string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}

func formatRatio(v float64) string {
	if v <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// formatBar formats with one digit more than the limits, so that a narrowly missed bar does not look met.
func formatBar(v float64) string {
	if v <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}

// formatConnections formats connections per call: a few for thousands of calls are none.
func formatConnections(v float64) string {
	if v < 0.0005 {
		return "0"
	}
	return fmt.Sprintf("%.3f", v)
}

func formatRate(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func formatMicroseconds(v float64) string {
	switch {
	case v < 1000:
		return fmt.Sprintf("%.0f µs", v)
	case v < 100e3:
		return fmt.Sprintf("%.2f ms", v/1e3)
	}
	return fmt.Sprintf("%.0f ms", v/1e3)
}

func formatBytes(n int64) string {
	switch v := float64(n); {
	case v < 1e6:
		return fmt.Sprintf("%.1f KB", v/1e3)
	case v < 10e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	default:
		return fmt.Sprintf("%.0f MB", v/1e6)
	}
}
