// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"slices"
	"testing"
	"time"
)

// rows returns all faults.
func rows() []row {
	return slices.Concat(extensionFaults(), callerFaults(), floodFaults(), memoryFaults(), fileFaults(), gatewayFaults(), rollingFaults(), endpointFaults(), logFaults())
}

// TestFaults injects each fault once.
func TestFaults(t *testing.T) {
	w := newWorld(t)
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
}

// TestSoak injects all faults in turns for the duration in HOOKGATE_SOAK, and compares the end with the beginning.
func TestSoak(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv("HOOKGATE_SOAK"))
	if err != nil {
		t.Skip("HOOKGATE_SOAK is not set: `make soak DURATION=1h` sets it")
	}
	w := newWorld(t)
	p := table{out: os.Stdout, base: w.warmUp(t)}
	p.head()
	w.pauseLoad(t)
	began := w.least(t)
	w.resumeLoad(t)
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); {
		w.beginSlowHeaders(t)
		for _, r := range rows() {
			t.Run(r.name, func(t *testing.T) {
				l := w.run(t, r)
				p.line(&l)
			})
		}
	}
	w.pauseLoad(t)
	all := line{name: "all of it", before: began, after: w.least(t), peak: w.gateway.peak(), healthy: w.look(t)}
	p.line(&all)
	for _, left := range began.left(&all.after) {
		t.Errorf("after %s: %s", duration, left)
	}
}
