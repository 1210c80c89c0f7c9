// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// rows returns all faults, after two rows without one.
func rows() []row {
	return slices.Concat(controls(), extensionFaults(), callerFaults(), floodFaults(), memoryFaults(), fileFaults(), gatewayFaults(),
		rollingFaults(), endpointFaults(), logFaults())
}

// TestFaults injects each fault once.
func TestFaults(t *testing.T) {
	w := newFixture(t)
	p := table{out: os.Stdout, base: w.warmUp(t)}
	w.beginSlowHeaders(t)
	var lines []line
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) { lines = append(lines, w.run(t, r)) })
	}
	p.head()
	for i := range lines {
		p.line(&lines[i])
	}
	for i := range lines {
		for _, failure := range lines[i].failures {
			t.Error(failure)
		}
	}
}

// soakVariable is the environment variable with the duration of TestSoak.
const soakVariable = "HOOKGATE_SOAK"

// TestSoak injects all faults in turns for the duration in HOOKGATE_SOAK, and compares the end with the state after the
// first turn: whatever a fault makes once, such as a series of a metric or the buffer of a pool, is there by then.
func TestSoak(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv(soakVariable))
	if err != nil {
		t.Skip(soakVariable + " is not set: `make soak DURATION=1h` sets it")
	}
	w := newFixture(t)
	p := table{out: os.Stdout, base: w.warmUp(t)}
	p.head()
	sums := make([]line, len(rows())) // of each row, over all turns
	turn := func() {
		w.beginSlowHeaders(t)
		for i, r := range rows() {
			t.Run(r.name, func(t *testing.T) {
				l := w.run(t, r)
				p.line(&l)
				if sums[i].name == "" {
					sums[i] = l
				} else {
					sums[i].add(&l)
				}
			})
		}
	}
	deadline := time.Now().Add(duration)
	turn()
	w.pauseLoad(t)
	first := w.usual(t)
	w.resumeLoad(t)
	turns := 1
	for ; turns == 1 || time.Now().Before(deadline); turns++ {
		turn()
	}
	w.pauseLoad(t)
	// Connections to the extension come and go with its discovery, so that the usual number is now one and now another.
	after, left := w.settle(t, &first)
	all := line{name: "all but the first turn", before: first, after: after, peak: w.gateway.peak(), healthy: w.look(t)}
	p.line(&all)
	// One turn has too few calls of healthy callers for a ratio of latencies that only one call of a hundred exceeds.
	p.base = sums[0].healthy
	fmt.Fprintf(p.out, "\nall %d turns, beside the row %q:\n", turns, sums[0].name)
	p.head()
	for i := range sums {
		p.line(&sums[i])
	}
	for _, what := range left {
		t.Errorf("after %d turns: %s", turns, what)
	}
}
