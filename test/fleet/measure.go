// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
)

// turns is how often direct calls and those through the gateway take turns in a measurement.
const turns = 4

// direct returns a caller of the extension.
func (w *world) direct() *caller {
	return newCaller(w.of, w.tls, "", func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, w.extension)
	})
}

// through returns a caller of a service.
func (w *world) through(s *service) *caller { return newCaller(w.of, w.tls, "."+extensionName, s.dial) }

// pair is a measurement of direct calls and of those through the gateway, in turns.
type pair struct {
	direct, gateway outcome
	usage           usage
}

// ratio returns how many times the p99 of direct calls that of the gateway is; infinite if there were none.
func (p *pair) ratio() float64 {
	if p.direct.percentile(.99) == 0 {
		return math.Inf(1)
	}
	return p.gateway.percentile(.99).Seconds() / p.direct.percentile(.99).Seconds()
}

// compare measures an open loop both ways, each for d.
func (w *world) compare(ctx context.Context, s *service, clusters int, perSecond float64, d time.Duration) (pair, error) {
	var p pair
	direct, gateway := w.direct(), w.through(s)
	defer direct.close()
	defer gateway.close()
	for _, c := range []*caller{direct, gateway} { // connects
		if _, err := c.closed(ctx, phaseSteady, 1, 1); err != nil {
			return p, err
		}
	}
	before, err := s.usage(ctx)
	if err != nil {
		return p, err
	}
	for range turns {
		for _, way := range []struct {
			of *caller
			to *outcome
		}{{direct, &p.direct}, {gateway, &p.gateway}} {
			got, err := way.of.open(ctx, clusters, perSecond, d/turns, nil)
			way.to.join(got)
			if err != nil {
				return p, err
			}
		}
	}
	after, err := s.usage(ctx)
	p.usage = after.since(before)
	return p, err
}

// longestRoll bounds the load of a rolling restart.
const longestRoll = 15 * time.Minute

// describe prints what was measured, and where.
func (w *world) describe(ctx context.Context) error {
	version, err := exec.CommandContext(ctx, w.hookgate, "version").Output()
	if err != nil {
		return err
	}
	commit := strings.Fields(string(version))
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(info), "model name"); ok {
			model, _, _ = strings.Cut(strings.TrimLeft(rest, "\t: "), "\n")
		}
	}
	load, _ := os.ReadFile("/proc/loadavg") // Linux says so, other systems do not
	busy, _, _ := strings.Cut(string(load), " ")
	limits := "without limits"
	if w.replica.milliCPU > 0 {
		limits = fmt.Sprintf("with %d mCPU and %d MiB", w.replica.milliCPU, w.replica.mebibytes)
	}
	fmt.Fprintf(w.out, "%s, commit %s; %d processors, %s, load average %s.\nReplicas %s, an extension that takes %s, connections that end "+
		"after %s.\nCalls of Cluster API %s for %d Clusters, recorded %s: %.1f for a reconciliation.\n",
		time.Now().Format(time.DateOnly), commit[min(1, len(commit)-1)], runtime.NumCPU(), model, busy, limits, w.takes, w.connectionAge,
		w.of.ClusterAPI, len(w.of.Clusters), w.of.Recorded, w.of.callsPerReconcile())
	return nil
}

// each starts a service of each number of replicas, and measures it.
func (w *world) each(ctx context.Context, cache bool, measure func(replicas int, s *service) error) error {
	for _, replicas := range w.replicas {
		s, err := w.start(ctx, replicas, cache)
		if err == nil {
			err = measure(replicas, s)
			err = errors.Join(err, s.stop())
		}
		if err != nil {
			return fmt.Errorf("%d replicas: %w", replicas, err)
		}
	}
	return nil
}

// steady measures the steady state of each fleet.
func (w *world) steady(ctx context.Context) error {
	t := newTable("Clusters", "replicas", "calls/s", "p50 direct", "gateway", "p99 direct", "gateway", "ratio of p99", "lost",
		"mCPU", "waited", "most memory", "calls by replica")
	for _, clusters := range w.clusters {
		cell := w.cell(phaseSteady, clusters)
		err := w.each(ctx, false, func(replicas int, s *service) error {
			p, err := w.compare(ctx, s, clusters, w.of.reconcilesPerSecond(clusters), w.duration)
			if err != nil {
				return err
			}
			addTo(cell, report.Direct, p.direct)
			addTo(cell, named(replicas), p.gateway)
			w.logf("steady: %d Clusters, %d replicas: %d calls", clusters, replicas, p.gateway.calls())
			t.row(clusters, replicas, fmt.Sprintf("%.1f", float64(p.gateway.calls())/p.gateway.took.Seconds()),
				p.direct.percentile(.5), p.gateway.percentile(.5), p.direct.percentile(.99), p.gateway.percentile(.99),
				fmt.Sprintf("%.2f", p.ratio()), lost(p.gateway), p.usage.cpu.Milliseconds()*1000/p.gateway.took.Milliseconds(),
				percent(p.usage.throttled()), mebibytes(s.peak()), shares(p.usage.calls))
			return nil
		})
		if err != nil {
			return err
		}
	}
	t.write(w.out, "Steady state")
	return nil
}

// highest looks for the highest rate of calls with a p99 that is near that of direct calls, and none lost.
func (w *world) highest(ctx context.Context) error {
	t := newTable("replicas", "highest rate, calls/s", "ratio of p99 there", "above it", "calls by replica")
	clusters := slices.Max(w.clusters)
	err := w.each(ctx, false, func(replicas int, s *service) error {
		perReconcile := w.of.callsPerReconcile()
		var best, above pair
		rate, refused := 0.0, 0.0
		try := func(at float64) (bool, error) {
			p, err := w.compare(ctx, s, clusters, at/perReconcile, w.duration/4)
			if ctx.Err() != nil {
				return false, err
			}
			holds := err == nil && p.gateway.lost == 0 && p.ratio() <= w.within
			w.logf("highest: %d replicas, %.0f calls/s: %.2f, %d lost, %v", replicas, at, p.ratio(), p.gateway.lost, err)
			if holds {
				rate, best = at, p
			} else {
				refused, above = at, p
			}
			return holds, nil
		}
		for at := min(50, w.most); ; at = min(2*at, w.most) {
			holds, err := try(at)
			if err != nil {
				return err
			}
			if !holds || at >= w.most {
				break
			}
		}
		for range 3 { // to an eighth of what lies between
			if refused == 0 {
				break
			}
			if _, err := try((rate + refused) / 2); err != nil {
				return err
			}
		}
		reached := fmt.Sprintf("%.0f", rate)
		if refused == 0 {
			reached += " or more"
		}
		t.row(replicas, reached, fmt.Sprintf("%.2f", best.ratio()), fmt.Sprintf("%.2f", above.ratio()), shares(best.usage.calls))
		return nil
	})
	t.write(w.out, fmt.Sprintf("Highest rate with a p99 within %.1f times that of direct calls", w.within))
	return err
}

// closedPhases are the phases that core goes through as fast as it can.
var closedPhases = []string{phaseCreate, phaseUpgrade, phaseRestart}

// cell adds a cell for the curves: of a phase, with a number of Clusters in place of callers.
func (w *world) cell(phase string, clusters int) *report.Cell {
	c := &report.Cell{Size: phase, Callers: clusters, Protocol: "h2"}
	w.result.Cells = append(w.result.Cells, c)
	return c
}

// addTo adds what callers have seen of a peer to a cell.
func addTo(c *report.Cell, peer string, o outcome) {
	at := slices.IndexFunc(c.Peers, func(p report.Peer) bool { return p.Peer == peer })
	if at < 0 {
		at, c.Peers = len(c.Peers), append(c.Peers, report.Peer{Peer: peer})
	}
	c.Peers[at].Rounds = append(c.Peers[at].Rounds, report.Round{
		Calls: o.calls(), Rate: float64(o.calls()) / o.took.Seconds(),
		P50: float64(o.percentile(.5).Microseconds()), P99: float64(o.percentile(.99).Microseconds()),
	})
}

func named(replicas int) string {
	if replicas == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", replicas)
}

// closedLoops measures the phases that core goes through as fast as it can.
func (w *world) closedLoops(ctx context.Context) error {
	t := newTable("phase", "Clusters", "replicas", "calls", "direct", "gateway", "ratio", "p99 direct", "gateway", "lost", "waited",
		"most memory", "calls by replica", "with cache", "ratio", "hits", "most memory")
	for _, phase := range closedPhases {
		if w.of.calls[phase] == nil || !slices.Contains(w.phases, phase) {
			continue
		}
		for _, clusters := range w.clusters {
			if err := w.closedLoop(ctx, t, phase, clusters); err != nil {
				return err
			}
		}
	}
	t.write(w.out, fmt.Sprintf("Closed loops of %d workers", w.workers))
	return nil
}

func (w *world) closedLoop(ctx context.Context, t *table, phase string, clusters int) error {
	caller := w.direct()
	direct, err := caller.closed(ctx, phase, clusters, w.workers)
	caller.close()
	if err != nil {
		return err
	}
	cell := w.cell(phase, clusters)
	addTo(cell, report.Direct, direct)
	for _, replicas := range w.replicas {
		plain, plainUsage, plainMost, err := w.loopOf(ctx, phase, clusters, replicas, false)
		if err != nil {
			return err
		}
		cached, cachedUsage, cachedMost, err := w.loopOf(ctx, phase, clusters, replicas, true)
		if err != nil {
			return err
		}
		addTo(cell, named(replicas), plain)
		addTo(cell, named(replicas)+", cache", cached)
		w.logf("%s: %d Clusters, %d replicas: %s direct, %s, %s with the cache", phase, clusters, replicas, direct.took, plain.took, cached.took)
		t.row(phase, clusters, replicas, plain.calls(), direct.took, plain.took, ratio(plain.took, direct.took),
			direct.percentile(.99), plain.percentile(.99), lost(plain), percent(plainUsage.throttled()), mebibytes(plainMost),
			shares(plainUsage.calls), cached.took, ratio(cached.took, direct.took), percent(cachedUsage.hits()), mebibytes(cachedMost))
	}
	return nil
}

// loopOf measures a closed loop through new replicas. A cache is filled before a restart as core fills it: by all that it
// has asked for before.
func (w *world) loopOf(ctx context.Context, phase string, clusters, replicas int, cache bool) (o outcome, u usage, most int64, err error) {
	s, err := w.start(ctx, replicas, cache)
	if err != nil {
		return o, u, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c := w.through(s)
	defer c.close()
	if cache && phase == phaseRestart {
		if _, err := c.closed(ctx, phase, clusters, w.workers); err != nil {
			return o, u, 0, err
		}
	}
	before, err := s.usage(ctx)
	if err != nil {
		return o, u, 0, err
	}
	if o, err = c.closed(ctx, phase, clusters, w.workers); err != nil {
		return o, u, 0, err
	}
	after, err := s.usage(ctx)
	return o, after.since(before), s.peak(), err
}

// rolling counts the calls that a rolling restart loses.
func (w *world) rolling(ctx context.Context) error {
	t := newTable("Clusters", "replicas", "took", "calls", "lost", "p99", "longest")
	clusters := slices.Max(w.clusters)
	err := w.each(ctx, false, func(replicas int, s *service) error {
		c := w.through(s)
		defer c.close()
		// Small fleets call so rarely that a restart would hardly be seen.
		rate := max(w.of.reconcilesPerSecond(clusters), 20/w.of.callsPerReconcile())
		began, rolled := time.Now(), make(chan struct{})
		var failed error
		go func() {
			defer close(rolled)
			failed = s.roll(ctx)
		}()
		all, err := c.open(ctx, clusters, rate, longestRoll, rolled)
		<-rolled
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		w.logf("rolling: %d replicas: %d calls, %d lost, %v", replicas, all.calls(), all.lost, all.first)
		t.row(clusters, replicas, time.Since(began), all.calls(), lost(all), all.percentile(.99), all.percentile(1))
		return nil
	})
	t.write(w.out, "Rolling restart under the steady load")
	return err
}

func (w *world) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(w.log, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
