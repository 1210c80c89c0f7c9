// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
)

// bodyCallers is the number of callers of the curves over bodies, which their titles name.
const bodyCallers = 16

var errNothing = errors.New("nothing was measured")

// overCells returns a line for each peer: a figure of its rounds over something of the cell.
func overCells(
	r *report.Result, x func(*report.Cell) float64, values func(*report.Cell, report.Peer) []float64, without ...string,
) ([]line, error) {
	if len(r.Cells) == 0 {
		return nil, errNothing
	}
	var lines []line
	for i, p := range r.Cells[0].Peers {
		if slices.Contains(without, p.Peer) {
			continue
		}
		l := line{name: p.Peer}
		for _, c := range r.Cells {
			if i >= len(c.Peers) || c.Peers[i].Peer != p.Peer {
				return nil, fmt.Errorf("the cells have different peers: %s", c.Size)
			}
			l.points = append(l.points, point{x(c), sampleOf(values(c, c.Peers[i]))})
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// figureOf is the value of each round, times a factor.
func figureOf(of report.Figure, factor float64) func(*report.Cell, report.Peer) []float64 {
	return func(_ *report.Cell, p report.Peer) []float64 {
		values := p.Rounds.Each(of)
		for i := range values {
			values[i] *= factor
		}
		return values
	}
}

// callerCurves are rates, latencies, CPU time and memory over the number of callers.
func callerCurves(r *report.Result) ([]picture, error) {
	callers := func(c *report.Cell) float64 { return float64(c.Callers) }
	memory := func(c *report.Cell, p report.Peer) []float64 { return []float64{float64(p.AboveIdle()) / 1e6} }
	const where = ", 4 KB over HTTP/1.1"
	return drawAll(r, callers, "callers", []curve{
		{name: "callers-rate", title: "Calls per second" + where, y: "calls/s", values: figureOf(report.Rate, 1), logY: true},
		{
			name: "callers-p99", title: "Latency, 99th percentile" + where, y: "ms", values: figureOf(report.P99, 1e-3),
			logY: true,
		},
		{
			name: "callers-cpu", title: "CPU time of the proxy per call" + where, y: "µs", values: figureOf(report.CPU, 1),
			proxies: true,
		},
		{name: "callers-memory", title: "Peak memory above idle" + where, y: "MB", values: memory, proxies: true},
	})
}

// bodyCurves are throughput, CPU time and memory over the size of bodies.
func bodyCurves(r *report.Result) ([]picture, error) {
	size := func(c *report.Cell) float64 { return float64(c.BodyBytes) / 1e3 }
	throughput := func(c *report.Cell, p report.Peer) []float64 {
		return figureOf(report.Rate, float64(c.BodyBytes)/1e6)(c, p)
	}
	inFlight := func(c *report.Cell, p report.Peer) []float64 {
		return []float64{float64(p.AboveIdle()) / float64(c.Callers) / 1e6}
	}
	where := fmt.Sprintf(", %d callers over HTTP/1.1", bodyCallers)
	const perCall = "Peak memory per call in flight"
	return drawAll(r, size, "KB of body", []curve{
		{name: "bodies-throughput", title: "Bodies per second" + where, y: "MB/s", values: throughput, logY: true},
		{
			name: "bodies-cpu", title: "CPU time of the proxy per call" + where, y: "µs", values: figureOf(report.CPU, 1),
			logY: true, proxies: true,
		},
		{name: "bodies-memory", title: perCall + where, y: "MB", values: inFlight, logY: true, proxies: true},
	})
}

// curve is a picture to draw; proxies leaves out the extension that is called directly.
type curve struct {
	name, title, y string
	values         func(*report.Cell, report.Peer) []float64
	logY, proxies  bool
}

func drawAll(r *report.Result, x func(*report.Cell) float64, xName string, all []curve) ([]picture, error) {
	var pictures []picture
	for _, c := range all {
		var without []string
		if c.proxies {
			without = []string{report.Direct}
		}
		lines, err := overCells(r, x, c.values, without...)
		if err != nil {
			return nil, err
		}
		p, err := chart{name: c.name, title: c.title, x: xName, y: c.y, logY: c.logY, lines: lines}.draw()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		pictures = append(pictures, p)
	}
	return pictures, nil
}

// fleetCurves are the p99 of calls in the steady state, and the rate of calls after a restart of Cluster API, over the
// number of Clusters, which the cells have in place of callers.
func fleetCurves(r *report.Result) ([]picture, error) {
	clusters := func(c *report.Cell) float64 { return float64(c.Callers) }
	var pictures []picture
	for _, of := range []struct {
		phase, only string // the beginning of the names of the lines, besides that of direct calls
		curve
	}{
		{"steady", "", curve{
			name: "fleet-p99", title: "99th percentile of calls while nothing changes", y: "ms",
			values: figureOf(report.P99, 1e-3),
		}},
		{"restart", "2 replicas", curve{
			name: "fleet-restart", title: "Calls per second of 50 workers after a restart of Cluster API", y: "calls/s",
			values: figureOf(report.Rate, 1), logY: true,
		}},
	} {
		var cells []*report.Cell
		for _, c := range r.Cells {
			if c.Size != of.phase {
				continue
			}
			chosen := *c
			chosen.Peers = slices.DeleteFunc(slices.Clone(c.Peers), func(p report.Peer) bool {
				return p.Peer != report.Direct && !strings.HasPrefix(p.Peer, of.only)
			})
			cells = append(cells, &chosen)
		}
		drawn, err := drawAll(&report.Result{Cells: cells}, clusters, "Clusters", []curve{of.curve})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.phase, err)
		}
		pictures = append(pictures, drawn...)
	}
	return pictures, nil
}

// handlerCurves are the time and the CPU time of calls to all handlers, and of calls to one beside them, over the
// number of handlers.
func handlerCurves(r *report.Result) ([]picture, error) {
	if len(r.Handlers) == 0 {
		return nil, errNothing
	}
	const slow = 20 // milliseconds, of each handler
	together, sequence := line{name: "all, through the gateway"}, line{name: "one after the other"}
	all, beside := line{name: "of a call to all, for each handler"}, line{name: "of a call to another handler"}
	for _, h := range r.Handlers {
		n := float64(h.Handlers)
		at := func(rounds report.Rounds, of report.Figure, factor float64) point {
			return point{n, sampleOf(figureOf(of, factor)(nil, report.Peer{Rounds: rounds}))}
		}
		together.points = append(together.points, at(h.Slow, report.P50, 1e-3))
		sequence.points = append(sequence.points, point{n, sample{n * slow, n * slow, n * slow}})
		all.points = append(all.points, at(h.Quick, report.CPU, 1/n))
		beside.points = append(beside.points, at(h.Beside, report.CPU, 1))
	}
	var pictures []picture
	for _, c := range []chart{
		{
			name: "handlers-time", title: "Time of a call to handlers that take 20 ms each", x: "handlers", y: "ms", logY: true,
			lines: []line{together, sequence},
		},
		{
			name: "handlers-cpu", title: "CPU time of the gateway with many registered handlers", x: "handlers", y: "µs",
			lines: []line{all, beside},
		},
	} {
		p, err := c.draw()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		pictures = append(pictures, p)
	}
	return pictures, nil
}

// sample is the median of rounds, with the lowest and the highest.
type sample struct{ low, middle, high float64 }

func sampleOf(values []float64) sample {
	if len(values) == 0 {
		return sample{}
	}
	return sample{slices.Min(values), report.Median(values), slices.Max(values)}
}
