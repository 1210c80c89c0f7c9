// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report has what the benchmark measures, as it is kept in JSON, and says it in tables, which are Markdown for
// the page about performance and aligned for a terminal. Curves and profiles, which need large libraries, are drawn from
// it by tools/performance.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The peers that others are compared with.
const (
	Gateway = "gateway"
	Direct  = "direct" // the extension, called without anything between: the ceiling
)

// Result holds all measurements of a run.
type Result struct {
	Machine         Machine    `json:"machine"`
	Rounds          int        `json:"rounds"`
	DurationSeconds float64    `json:"secondsPerRound"`
	Cells           []*Cell    `json:"cells"`
	FanOuts         []*FanOut  `json:"fanOuts,omitempty"`
	Handlers        []*Handler `json:"handlers,omitempty"`
	// Conversion is measured with the size S.
	Conversion *Conversion `json:"conversion,omitempty"`
	// Chain is measured with the size M.
	Chain *Chain `json:"chain,omitempty"`
	// Rules is measured with a small request.
	Rules *Rules `json:"rules,omitempty"`
	// Recording is measured with the size S.
	Recording *Recording `json:"recording,omitempty"`
	Bars      []Bar      `json:"bars,omitempty"`
}

// Machine is where a run took place.
type Machine struct {
	Processors int    `json:"processors"`
	Model      string `json:"model"`
	// Load is the load average of the minute before the run: above 0, the machine did something else, too.
	Load string `json:"loadAverage"`
	Go   string `json:"go"`
}

func (m Machine) String() string {
	return fmt.Sprintf("%d processors (%s), load average %s before the run, bench built with %s", m.Processors, m.Model, m.Load, m.Go)
}

// Cell is what was measured with one size of body, number of callers and protocol.
type Cell struct {
	Size      string `json:"size"`
	BodyBytes int    `json:"bodyBytes"`
	Callers   int    `json:"callers"`
	Protocol  string `json:"protocol"` // of the callers: h1 or h2
	// GRPC says that the extension speaks gRPC.
	GRPC bool `json:"grpc,omitempty"`
	// Measured is the number of rounds. If Steady, the last of them agreed and are the result; otherwise it is all.
	Measured int    `json:"measuredRounds"`
	Steady   bool   `json:"steady"`
	Peers    []Peer `json:"peers"`
}

// Peer is what was measured of one peer in a cell.
type Peer struct {
	Peer string `json:"peer"`
	// Idle is the resident memory before any load, in bytes.
	Idle   int64  `json:"idleResidentBytes"`
	Rounds Rounds `json:"rounds"`
	// Profile is the name of the file with the CPU profile, if there is one.
	Profile string `json:"profile,omitempty"`
}

// Round is one turn of one peer. Times are in microseconds, sizes in bytes.
type Round struct {
	Calls int     `json:"calls"`
	Rate  float64 `json:"requestsPerSecond"`
	P50   float64 `json:"p50Microseconds"`
	P99   float64 `json:"p99Microseconds"`
	// CPU is user and system time of the peer's own processes, per call.
	CPU float64 `json:"cpuMicrosecondsPerCall"`
	// Connections is how many connections the extension has accepted meanwhile, per call.
	Connections float64 `json:"connectionsPerCall"`
	// Resident is VmRSS behind the round, Peak its highest sample.
	Resident int64 `json:"residentBytes"`
	Peak     int64 `json:"peakResidentBytes"`
}

// FanOut has times in milliseconds, medians, of calls to one slow handler and to all.
type FanOut struct {
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

// Conversion holds medians of the gateway's CPU time per call, in microseconds: for a handler without a policy, for one
// whose policy names the version that is sent, and for one that gets a converted Cluster.
type Conversion struct {
	BodyBytes int     `json:"bodyBytes"`
	Callers   int     `json:"callers"`
	Plain     float64 `json:"plainCPUMicroseconds"`
	Same      float64 `json:"sameCPUMicroseconds"`
	Converted float64 `json:"convertedCPUMicroseconds"`

	// SameToPlain and ConvertedToPlain have a ratio for each round.
	SameToPlain      []float64 `json:"sameToPlain"`
	ConvertedToPlain []float64 `json:"convertedToPlain"`
}

// Handler is what a number of handlers costs: rounds of calls to another handler, which is registered beside them, and
// of calls to all of them, which answer at once or slowly.
type Handler struct {
	Handlers int `json:"handlers"`
	// Idle is the resident memory of the gateway before any load, in bytes.
	Idle   int64  `json:"idleResidentBytes"`
	Beside Rounds `json:"beside"`
	Quick  Rounds `json:"quick"`
	Slow   Rounds `json:"slow"`
}

// Chain is what a chain of handlers costs, of which each patches some of the items: rounds of one caller's calls to the
// chain, whose handlers answer at once or slowly, and to one of the quick handlers.
type Chain struct {
	Steps            int     `json:"steps"`
	StepMilliseconds float64 `json:"stepMilliseconds"` // of the slow ones
	BodyBytes        int     `json:"bodyBytes"`
	Patches          int     `json:"patches"` // of each step
	One              Rounds  `json:"one"`
	Quick            Rounds  `json:"quick"`
	Slow             Rounds  `json:"slow"`
}

// TimeToSteps returns the time of the slow chain divided by that of its steps, for each round.
func (c *Chain) TimeToSteps() []float64 {
	times := c.Slow.Each(P50)
	for i := range times {
		times[i] /= 1e3 * c.StepMilliseconds * float64(c.Steps)
	}
	return times
}

// CPUToOnes returns the CPU time of the quick chain divided by that of a call to one handler, for each round.
func (c *Chain) CPUToOnes() []float64 { return Ratios(c.Quick.Each(CPU), c.One.Each(CPU)) }

// Rules is what HookRules cost: rounds of calls to the handlers of a hook, where there are no handlers and where there are
// rules, some of which match.
type Rules struct {
	Rules    int    `json:"rules"`
	Matching int    `json:"matching"`
	Callers  int    `json:"callers"`
	None     Rounds `json:"none"`
	All      Rounds `json:"all"`
}

// CPUMore returns how much more CPU time a call takes with the rules, in microseconds, for each round.
func (r *Rules) CPUMore() []float64 {
	more := r.All.Each(CPU)
	for i, none := range r.None.Each(CPU) {
		more[i] -= none
	}
	return more
}

// Recording is what the recording of calls costs: rounds of a gateway with it and of one without, in turns.
type Recording struct {
	BodyBytes int    `json:"bodyBytes"`
	Callers   int    `json:"callers"`
	Without   Rounds `json:"without"`
	With      Rounds `json:"with"`
}

// RateToWithout returns the rate with recording divided by that without, for each round.
func (r *Recording) RateToWithout() []float64 { return Ratios(r.With.Each(Rate), r.Without.Each(Rate)) }

// Bar is a measured value with the project's limit.
type Bar struct {
	Name string `json:"name"`
	// Value is the median, Low and High are the lowest and the highest of the rounds.
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Limit  float64 `json:"limit"`
	AtMost bool    `json:"atMost"`
	// Verdict is Pass, Below or Unmeasured.
	Verdict string `json:"verdict"`
}

// The verdicts of bars.
const (
	Pass       = "PASS"
	Below      = "BELOW"
	Unmeasured = "not measured"
)

// Read reads the results in the files of a directory whose names begin with name, in their order.
func Read(dir, name string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, name+"*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no %s*.json in %q", name, dir)
	}
	parts := make([]*Result, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &parts[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return parts, nil
}

// Write writes the result to a file, for Read.
func (r *Result) Write(file string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}

// A Figure is one of the values of a round.
type Figure func(Round) float64

// Rate returns the calls per second.
func Rate(r Round) float64 { return r.Rate }

// P50 returns the median of the latencies.
func P50(r Round) float64 { return r.P50 }

// P99 returns the latency that 99 % of the calls do not exceed.
func P99(r Round) float64 { return r.P99 }

// CPU returns the CPU time of a call.
func CPU(r Round) float64 { return r.CPU }

// Rounds are the rounds of one peer, in their order.
type Rounds []Round

// Each returns a figure of each round.
func (rs Rounds) Each(of Figure) []float64 {
	values := make([]float64, len(rs))
	for i, r := range rs {
		values[i] = of(r)
	}
	return values
}

// Median returns the median of a figure.
func (rs Rounds) Median(of Figure) float64 { return Median(rs.Each(of)) }

// AboveIdle is how far the resident memory was above what it was before any load.
func (p *Peer) AboveIdle() int64 {
	peak := p.Idle
	for _, r := range p.Rounds {
		peak = max(peak, r.Peak)
	}
	return peak - p.Idle
}

// Of returns what was measured of a peer, nil if nothing was.
func (c *Cell) Of(peer string) *Peer {
	if i := slices.IndexFunc(c.Peers, func(p Peer) bool { return p.Peer == peer }); i >= 0 {
		return &c.Peers[i]
	}
	return nil
}

// Ratios returns the gateway's figure divided by the peer's in each round, none if one of them was not measured.
func (c *Cell) Ratios(peer string, of Figure) []float64 {
	a, b := c.Of(Gateway), c.Of(peer)
	if a == nil || b == nil {
		return nil
	}
	return Ratios(a.Rounds.Each(of), b.Rounds.Each(of))
}

// Median returns the middle value, the mean of the two middle ones where their number is even, and 0 without values.
// It leaves values in their order.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	half := len(s) / 2
	if len(s)%2 == 0 {
		return (s[half-1] + s[half]) / 2
	}
	return s[half]
}

// Ratios returns each a[i]/b[i]. The rounds are interleaved, so other load in round i affects both, and cancels better
// than in a ratio of two medians. Pairs without a divisor are left out.
func Ratios(a, b []float64) []float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return r
}
