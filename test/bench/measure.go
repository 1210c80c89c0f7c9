// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/process"
)

// cell is one combination of size, callers and protocol.
type cell struct {
	payload
	callers  int
	protocol protocol
	// grpc says that the extension behind the peers speaks gRPC.
	grpc bool
}

func (c cell) String() string { return c.result().String() }

// result returns the result of the cell, without a peer's.
func (c cell) result() *report.Cell {
	return &report.Cell{Size: c.size, BodyBytes: len(c.body), Callers: c.callers, Protocol: string(c.protocol), GRPC: c.grpc}
}

// pace sets how long a cell is measured: for rounds, and then on until as many rounds in a row agree with each other, but
// for no more than most.
type pace struct {
	rounds   int
	most     int
	duration time.Duration
	warmUp   time.Duration
}

// measureCell measures the peers in turn, round by round, so that whatever else the machine does affects all of them.
// Every other round goes backwards: no peer always runs behind the same one. If the last rounds agree, they are the
// result; otherwise all rounds are.
func measureCell(
	ctx context.Context, c cell, peers []*peer, extension *peer, pc pace, caPEM []byte,
) (*report.Cell, error) {
	res := c.result()
	for _, p := range peers {
		res.Peers = append(res.Peers, report.Peer{Peer: p.name, Idle: p.idle})
	}
	for n := range max(pc.rounds, pc.most) {
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
			res.Peers[i].Rounds = append(res.Peers[i].Rounds, r)
		}
		if res.Measured = n + 1; res.Measured < pc.rounds {
			continue
		}
		if res.Steady = settle(res, pc.rounds); res.Steady {
			break
		}
	}
	return res, nil
}

// settle reports whether the last n rounds agree, and if so drops those before them.
func settle(c *report.Cell, n int) bool {
	last := &report.Cell{Peers: slices.Clone(c.Peers)}
	for i, p := range last.Peers {
		last.Peers[i].Rounds = p.Rounds[len(p.Rounds)-n:]
	}
	for _, p := range last.Peers {
		// The extension itself is the ceiling, and may vary.
		if p.Peer != peerGateway && p.Peer != peerDirect && spread(last.Ratios(p.Peer, report.Rate)) > agreement {
			return false
		}
	}
	c.Peers = last.Peers
	return true
}

// agreement is how far the lowest and the highest ratio may be apart, as a part of their median, for rounds to agree.
const agreement = 0.15

// spread returns how far the lowest and the highest value are apart, as a part of their median; 0 without values.
func spread(values []float64) float64 {
	middle := report.Median(values)
	if middle <= 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / middle
}

// turn is one of the loads that take turns in measureTurns.
type turn struct {
	cell   cell
	peer   *peer
	rounds *report.Rounds
}

// measureTurns measures each turn in each round, so that whatever else the machine does affects all of them.
func (f *fleet) measureTurns(ctx context.Context, what string, pc pace, turns ...turn) error {
	for n := range pc.rounds {
		for _, t := range turns {
			round, err := measureRound(ctx, t.cell, t.peer, f.peer(peerDirect), pc, f.certs.caPEM)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("%s: handler %q: round %d: %w%s", what, t.cell.handler, n+1, err, t.peer.complaint())
			}
			*t.rounds = append(*t.rounds, round)
		}
	}
	return nil
}

func measureRound(ctx context.Context, c cell, p, extension *peer, pc pace, caPEM []byte) (report.Round, error) {
	callers, err := loadOf(c, p, caPEM).open(ctx)
	if err != nil {
		return report.Round{}, fmt.Errorf("connect: %w", err)
	}
	defer closeAll(callers)
	if _, err := drive(ctx, callers, pc.warmUp); err != nil {
		return report.Round{}, err
	}

	connections, err := extension.connections(caPEM)
	if err != nil {
		return report.Round{}, err
	}
	before, err := process.CPUTime(p.pids)
	if err != nil {
		return report.Round{}, err
	}
	peak := process.WatchMemory(p.pids)
	s, err := drive(ctx, callers, pc.duration)
	r := report.Round{Peak: peak(), Calls: len(s.latencies)}
	if err != nil {
		return report.Round{}, err
	}
	after, err := process.CPUTime(p.pids)
	if err != nil {
		return report.Round{}, err
	}
	accepted, err := extension.connections(caPEM)
	if err != nil {
		return report.Round{}, err
	}
	if r.Resident, err = process.Resident(p.pids); err != nil {
		return report.Round{}, err
	}
	r.Rate = float64(r.Calls) / s.elapsed.Seconds()
	r.P50 = microseconds(percentile(s.latencies, 50))
	r.P99 = microseconds(percentile(s.latencies, 99))
	if extension != nil {
		r.Connections = float64(accepted-connections-1) / float64(r.Calls) // one asked
	}
	r.CPU = microseconds(after-before) / float64(r.Calls)
	return r, nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// newClient returns a client for what is asked of a peer beside the load: each request has a connection of its own.
func newClient(caPEM []byte) (*http.Client, error) {
	config, err := clientTLS(caPEM)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout: callTimeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}, nil
}

// connections asks the null extension, on a connection of its own, how many it has accepted. It returns 0 without an
// extension that can be asked.
func (p *peer) connections(caPEM []byte) (int, error) {
	if p == nil {
		return 0, nil
	}
	client, err := newClient(caPEM)
	if err != nil {
		return 0, err
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
