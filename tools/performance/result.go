// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// result is what test/bench writes, as far as it is shown. Times are in microseconds, sizes in bytes.
type result struct {
	Machine struct {
		Processors  int    `json:"processors"`
		Model       string `json:"model"`
		LoadAverage string `json:"loadAverage"`
		Go          string `json:"go"`
	} `json:"machine"`
	Cells    []cell     `json:"cells"`
	Handlers []handlers `json:"handlers"`
	Bars     []bar      `json:"bars"`
}

type cell struct {
	Size      string `json:"size"`
	BodyBytes int    `json:"bodyBytes"`
	Callers   int    `json:"callers"`
	Protocol  string `json:"protocol"`
	GRPC      bool   `json:"grpc"`
	Measured  int    `json:"measuredRounds"`
	Steady    bool   `json:"steady"`
	Peers     []peer `json:"peers"`
}

type peer struct {
	Peer   string  `json:"peer"`
	Idle   int64   `json:"idleResidentBytes"`
	Rounds []round `json:"rounds"`
	// Profile is the name of a file beside the result, empty without one.
	Profile string `json:"profile"`
}

type round struct {
	Rate float64 `json:"requestsPerSecond"`
	P50  float64 `json:"p50Microseconds"`
	P99  float64 `json:"p99Microseconds"`
	CPU  float64 `json:"cpuMicrosecondsPerCall"`
	Peak int64   `json:"peakResidentBytes"`
}

type handlers struct {
	Handlers int     `json:"handlers"`
	Idle     int64   `json:"idleResidentBytes"`
	Beside   []round `json:"beside"`
	Quick    []round `json:"quick"`
	Slow     []round `json:"slow"`
}

type bar struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Limit   float64 `json:"limit"`
	AtMost  bool    `json:"atMost"`
	Verdict string  `json:"verdict"`
}

// The name of the peer that the others are compared with, and the verdict of a bar without a measurement.
const (
	gateway    = "gateway"
	unmeasured = "not measured"
)

func readResult(file string) (*result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// readResults reads the files whose names begin with name, in their order.
func readResults(dir, name string) ([]*result, error) {
	files, err := filepath.Glob(filepath.Join(dir, name+"*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no %s*.json in %q", name, dir)
	}
	parts := make([]*result, len(files))
	for i, file := range files {
		if parts[i], err = readResult(file); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// merge returns the measurements of all parts, one after the other.
func merge(parts []*result) *result {
	all := new(result)
	for _, p := range parts {
		all.Cells, all.Handlers = append(all.Cells, p.Cells...), append(all.Handlers, p.Handlers...)
	}
	return all
}

// figure is what a round says of something.
type figure func(round) float64

func rate(r round) float64 { return r.Rate }
func p50(r round) float64  { return r.P50 }
func p99(r round) float64  { return r.P99 }
func cpu(r round) float64  { return r.CPU }

// sample is the median of rounds, with the lowest and the highest.
type sample struct{ low, middle, high float64 }

func sampleOf(values []float64) sample {
	if len(values) == 0 {
		return sample{}
	}
	s := slices.Sorted(slices.Values(values))
	half := len(s) / 2
	middle := s[half]
	if len(s)%2 == 0 {
		middle = (s[half-1] + s[half]) / 2
	}
	return sample{low: s[0], middle: middle, high: s[len(s)-1]}
}

func each(rounds []round, of figure) []float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	return values
}

// callers says who calls: how many, and over what.
func (c cell) callers() string {
	text := fmt.Sprintf("%d, %s", c.Callers, map[string]string{"h1": "HTTP/1.1", "h2": "HTTP/2"}[c.Protocol])
	if c.GRPC {
		text += " to gRPC"
	}
	return text
}

// peak is how far the resident memory was above what it was before any load.
func (p peer) peak() int64 {
	peak := p.Idle
	for _, r := range p.Rounds {
		peak = max(peak, r.Peak)
	}
	return peak - p.Idle
}

// ratios are those of the gateway to p, round by round.
func (c cell) ratios(p peer, of figure) []float64 {
	i := slices.IndexFunc(c.Peers, func(p peer) bool { return p.Peer == gateway })
	if i < 0 || p.Peer == gateway {
		return nil
	}
	var values []float64
	for n, r := range p.Rounds {
		if n < len(c.Peers[i].Rounds) && of(r) > 0 {
			values = append(values, of(c.Peers[i].Rounds[n])/of(r))
		}
	}
	return values
}
