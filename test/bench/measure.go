// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// cell is one combination of size, callers and protocol.
type cell struct {
	payload
	callers  int
	protocol protocol
}

func (c cell) String() string {
	noun := "callers"
	if c.callers == 1 {
		noun = "caller"
	}
	return fmt.Sprintf("%s, %d %s, %s", c.size, c.callers, noun, c.protocol)
}

// round is one turn of one peer. Times are in microseconds, sizes in bytes.
type round struct {
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

// pace sets how long a cell is measured.
type pace struct {
	rounds   int
	duration time.Duration
	warmUp   time.Duration
}

// measureCell measures the peers in turn, round by round, so that whatever else the machine does affects all of them.
// Every other round goes backwards: no peer always runs behind the same one.
func measureCell(
	ctx context.Context, c cell, peers []*peer, extension *peer, pc pace, caPEM []byte,
) ([]peerResult, error) {
	results := make([]peerResult, len(peers))
	for i, p := range peers {
		results[i] = peerResult{Peer: p.name, Idle: p.idle}
	}
	for n := range pc.rounds {
		for i := range peers {
			if n%2 == 1 {
				i = len(peers) - 1 - i
			}
			p := peers[i]
			r, err := measureRound(ctx, c, p, extension, pc, caPEM)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: round %d: %w%s", c, p.name, n+1, err, p.complaint())
			}
			results[i].Rounds = append(results[i].Rounds, r)
		}
	}
	return results, nil
}

func measureRound(ctx context.Context, c cell, p, extension *peer, pc pace, caPEM []byte) (round, error) {
	l := load{
		address: p.address, caPEM: caPEM, path: p.path(c.hook, c.handler), body: c.body,
		callers: c.callers, protocol: c.protocol,
	}
	callers, err := l.open(ctx)
	if err != nil {
		return round{}, fmt.Errorf("connect: %w", err)
	}
	defer closeAll(callers)
	if _, err := drive(ctx, callers, pc.warmUp); err != nil {
		return round{}, err
	}

	connections, err := extension.connections(caPEM)
	if err != nil {
		return round{}, err
	}
	before, err := process.CPUTime(p.pids)
	if err != nil {
		return round{}, err
	}
	peak := process.WatchMemory(p.pids)
	s, err := drive(ctx, callers, pc.duration)
	r := round{Peak: peak(), Calls: len(s.latencies)}
	if err != nil {
		return round{}, err
	}
	after, err := process.CPUTime(p.pids)
	if err != nil {
		return round{}, err
	}
	accepted, err := extension.connections(caPEM)
	if err != nil {
		return round{}, err
	}
	if r.Resident, err = process.Resident(p.pids); err != nil {
		return round{}, err
	}
	r.Rate = float64(r.Calls) / s.elapsed.Seconds()
	r.P50 = microseconds(percentile(s.latencies, 50))
	r.P99 = microseconds(percentile(s.latencies, 99))
	r.Connections = float64(accepted-connections-1) / float64(r.Calls) // one asked
	r.CPU = microseconds(after-before) / float64(r.Calls)
	return r, nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// connections asks the null extension, on a connection of its own, how many it has accepted.
func (p *peer) connections(caPEM []byte) (int, error) {
	config, err := clientTLS(caPEM)
	if err != nil {
		return 0, err
	}
	client := &http.Client{
		Timeout: callTimeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}
	resp, err := client.Get("https://" + p.address + connectionsPath)
	if err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var n int
	if _, err := fmt.Fscan(resp.Body, &n); err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	return n, nil
}

// measureFanOut compares a call to that many slow handlers, which the gateway aggregates, with a call to one of them, and
// with what Cluster API's own client does: one after the other.
func measureFanOut(
	ctx context.Context, gateway, direct *peer, handlers, times int, caPEM []byte,
) (*fanOutResult, error) {
	body := samples.Body(hookSlow)
	var opened []caller
	defer func() { closeAll(opened) }()
	open := func(p *peer, handler string) (caller, error) {
		l := load{
			address: p.address, caPEM: caPEM, path: p.path(hookSlow, handler), body: body,
			callers: 1, protocol: http1Protocol,
		}
		cs, err := l.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("fan-out: connect to %s: %w", p.name, err)
		}
		opened = append(opened, cs...)
		return cs[0], nil
	}

	one, err := open(gateway, slowHandler(0))
	if err != nil {
		return nil, err
	}
	all, err := open(gateway, "")
	if err != nil {
		return nil, err
	}
	var sequence []caller
	for i := range handlers {
		c, err := open(direct, slowHandler(i))
		if err != nil {
			return nil, err
		}
		sequence = append(sequence, c)
	}

	var ones, alls, sequences []float64
	for n := range times + 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a, errOne := timeCalls(one)
		b, errAll := timeCalls(all)
		c, errSequence := timeCalls(sequence...)
		for _, e := range []struct {
			p   *peer
			err error
		}{{gateway, errOne}, {gateway, errAll}, {direct, errSequence}} {
			if e.err != nil {
				return nil, fmt.Errorf("fan-out: %s: %w%s", e.p.name, e.err, e.p.complaint())
			}
		}
		if n > 0 { // The first one warms up: it opens the gateway's connections.
			ones, alls, sequences = append(ones, a), append(alls, b), append(sequences, c)
		}
	}
	return &fanOutResult{
		Handlers: handlers, HandlerMilliseconds: float64(slowTime.Milliseconds()), Times: times,
		One: median(ones), All: median(alls), Sequential: median(sequences),
		AllToOne: medianRatio(alls, ones), SequentialToOne: medianRatio(sequences, ones),
	}, nil
}

// timeCalls makes one call after the other and returns the milliseconds that all took.
func timeCalls(cs ...caller) (float64, error) {
	start := time.Now()
	for _, c := range cs {
		if err := c.call(); err != nil {
			return 0, err
		}
	}
	return microseconds(time.Since(start)) / 1000, nil
}
