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
	Machine         machine         `json:"machine"`
	Rounds          int             `json:"rounds"`
	DurationSeconds float64         `json:"secondsPerRound"`
	Cells           []*cellResult   `json:"cells"`
	FanOuts         []*fanOutResult `json:"fanOuts,omitempty"`
	// Conversion is measured with the size S.
	Conversion *conversionResult `json:"conversion,omitempty"`
	Handlers   []*handlersResult `json:"handlers,omitempty"`
	Bars       []bar             `json:"bars,omitempty"`
}

type cellResult struct {
	Size      string   `json:"size"`
	BodyBytes int      `json:"bodyBytes"`
	Callers   int      `json:"callers"`
	Protocol  protocol `json:"protocol"`
	// GRPC says that the extension speaks gRPC.
	GRPC bool `json:"grpc,omitempty"`
	// Measured is the number of rounds. If Steady, the last of them agreed and are the result; otherwise it is all.
	Measured int          `json:"measuredRounds"`
	Steady   bool         `json:"steady"`
	Peers    []peerResult `json:"peers"`
}

type peerResult struct {
	Peer string `json:"peer"`
	// Idle is the resident memory before any load, in bytes.
	Idle   int64   `json:"idleResidentBytes"`
	Rounds []round `json:"rounds"`
	// Profile is the name of the file with the CPU profile, if there is one.
	Profile string `json:"profile,omitempty"`
}

// fanOutResult has times in milliseconds, medians.
type fanOutResult struct {
	Handlers            int     `json:"handlers"`
	HandlerMilliseconds float64 `json:"handlerMilliseconds"`
	Times               int     `json:"times"`
	One                 float64 `json:"oneMilliseconds"`
	All                 float64 `json:"allMilliseconds"`
	Sequential          float64 `json:"sequentialMilliseconds"`
	// AllToOnes has each time of all divided by that of one beside it.
	AllToOnes       []float64 `json:"allToOnes"`
	SequentialToOne float64   `json:"sequentialToOne"`
	// Together is the time of all, called directly at the same time, and TogetherToOnes has each divided by that of one,
	// called directly: the least that a fan-out takes with this extension and on this machine.
	Together       float64   `json:"togetherMilliseconds"`
	TogetherToOnes []float64 `json:"togetherToOnes"`
}

// cell returns the result of a cell, by size, callers and protocols, or nil if it was not selected.
func (r *result) cell(wanted cell) *cellResult {
	for _, c := range r.Cells {
		if c.Size == wanted.size && c.Callers == wanted.callers && c.Protocol == wanted.protocol && c.GRPC == wanted.grpc {
			return c
		}
	}
	return nil
}

// cell returns what was measured.
func (c *cellResult) cell() cell {
	return cell{payload: payload{size: c.Size}, callers: c.Callers, protocol: c.Protocol, grpc: c.GRPC}
}

func (c *cellResult) peer(name string) *peerResult {
	if i := slices.IndexFunc(c.Peers, func(p peerResult) bool { return p.Peer == name }); i >= 0 {
		return &c.Peers[i]
	}
	return nil
}

// ratios returns a's figure divided by b's in each round, none if one of them was not measured.
func (c *cellResult) ratios(a, b string, figure func(round) float64) []float64 {
	pa, pb := c.peer(a), c.peer(b)
	if pa == nil || pb == nil {
		return nil
	}
	return ratios(pa.each(figure), pb.each(figure))
}

// widest returns the peer whose rates, beside the gateway's, differ most from round to round, and these ratios. The
// extension itself is no such peer: it is the ceiling.
func (c *cellResult) widest() (peer string, values []float64) {
	for _, p := range c.Peers {
		if p.Peer == peerGateway || p.Peer == peerDirect {
			continue
		}
		if v := c.ratios(peerGateway, p.Peer, rateOf); len(v) > 0 && (peer == "" || spread(v) > spread(values)) {
			peer, values = p.Peer, v
		}
	}
	return peer, values
}

// settle reports whether the last n rounds agree, and if so drops those before them.
func (c *cellResult) settle(n int) bool {
	last := &cellResult{Peers: slices.Clone(c.Peers)}
	for i, p := range last.Peers {
		last.Peers[i].Rounds = p.Rounds[len(p.Rounds)-n:]
	}
	if _, values := last.widest(); spread(values) > agreement {
		return false
	}
	c.Peers = last.Peers
	return true
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

const legend = `Medians of %d rounds of %v, in which the peers take turns; %d rounds at most, until as many agree within %.0f %%.
  min-max     lowest and highest round of req/s: how far to trust the median
  CPU/call    user and system time of the peer's own process; the extension's is the row "direct"
  RSS, peak+  resident memory behind a round, and its peak above what it was before any load
  conns       connections that the extension accepts, each with a handshake, per call
  gw rate     gateway's req/s / this peer's: more is better
  gw CPU      gateway's CPU/call / this peer's: less is better, and less noisy than rates

`

// writeCell prints one cell's rows.
func (c *cellResult) writeCell(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, %s, %s\n", c.Size, formatBytes(int64(c.BodyBytes)), formatCallers(c.Callers), formatProtocols(c.Protocol, c.GRPC))
	fmt.Fprintf(&b, rowFormat+"\n",
		"peer", "req/s", "min-max", "p50", "p99", "CPU/call", "RSS", "peak+", "conns", "gw rate", "gw CPU")
	for _, p := range c.Peers {
		rates := p.each(rateOf)
		rateRatio, cpuRatio := "", ""
		if p.Peer != peerGateway {
			rateRatio = formatRatio(median(c.ratios(peerGateway, p.Peer, rateOf)))
			cpuRatio = formatRatio(median(c.ratios(peerGateway, p.Peer, cpuOf)))
		}
		row := fmt.Sprintf(rowFormat, p.Peer, formatRate(median(rates)),
			formatRate(slices.Min(rates))+"-"+formatRate(slices.Max(rates)),
			formatMicroseconds(median(p.each(p50Of))),
			formatMicroseconds(median(p.each(p99Of))),
			formatMicroseconds(median(p.each(cpuOf))),
			formatBytes(int64(median(p.each(func(r round) float64 { return float64(r.Resident) })))),
			formatBytes(p.aboveIdle()), formatConnections(median(p.each(func(r round) float64 { return r.Connections }))), rateRatio, cpuRatio)
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	if peer, values := c.widest(); peer != "" {
		verdict := "agree"
		if !c.Steady {
			verdict = "do not agree"
		}
		fmt.Fprintf(&b, "  the %d rounds of %d %s: gateway / %s is the widest ratio of rates, %.2f-%.2f\n", len(values), c.Measured, verdict,
			peer, slices.Min(values), slices.Max(values))
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// writeFanOut prints the fan-out's rows.
func (f *fanOutResult) writeFanOut(w io.Writer) error {
	_, err := fmt.Fprintf(w, `Fan-out: a lifecycle call to handlers that take %.0f ms each, medians of %d
  one handler, through the gateway               %8.1f ms
  %3d handlers, aggregated by the gateway        %8.1f ms  %6.2f times one
  %3d handlers, called directly, all at once     %8.1f ms  %6.2f times one that is called directly: the floor here
  %3d handlers, called directly and in sequence  %8.1f ms  %6.2f times one, as Cluster API's own client does

`, f.HandlerMilliseconds, f.Times, f.One, f.Handlers, f.All, median(f.AllToOnes), f.Handlers, f.Together,
		median(f.TogetherToOnes), f.Handlers, f.Sequential, f.SequentialToOne)
	return err
}

// writeJSON writes measurements to a file.
func writeJSON(file string, measured any) error {
	content, err := json.MarshalIndent(measured, "", "  ")
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

func formatCallers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

func formatProtocols(callers protocol, grpc bool) string {
	if grpc {
		return callers.String() + " to gRPC"
	}
	return callers.String()
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
