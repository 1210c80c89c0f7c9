// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent is how much the heap may grow between two collections, in percent, as long as it stays below the limit.
	gcPercent = 400
	// leastLimit is the least limit, in bytes: below it, collections are rare.
	leastLimit = 128 << 20
	// limitMargin is what is added to one and a half times what is in use, in bytes.
	limitMargin = 32 << 20
)

// tuneGC makes collections fewer while little memory is in use, and more while much is. A gateway that forwards small
// bodies has next to no live heap, so that Go's own rule, to collect whenever the heap has doubled, would have it collect
// all the time; and while large bodies are in flight, to let them double is to need too much. An operator who sets GOGC or
// GOMEMLIMIT decides instead. A sidecar is not tuned: it has few calls, and shall be small.
func tuneGC(lookupEnv func(string) (string, bool)) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if _, ok := lookupEnv(name); ok {
			return
		}
	}
	debug.SetGCPercent(gcPercent)
	g := &gcTuner{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, set: func(limit int64) { debug.SetMemoryLimit(limit) }}
	g.tune(0)
	g.afterNextGC()
}

// gcTuner sets the memory limit anew after each collection. The limit is soft: if more is in use before it is raised, Go
// collects more, and no allocation fails.
type gcTuner struct {
	live  []metrics.Sample
	set   func(limit int64)
	limit int64
}

// afterNextGC runs the tuner after the next collection, and after each that follows: an object that nothing refers to is
// what a collection finds.
func (g *gcTuner) afterNextGC() {
	marker := new([16]byte)
	runtime.AddCleanup(marker, func(g *gcTuner) {
		metrics.Read(g.live)
		g.tune(int64(g.live[0].Value.Uint64()))
		g.afterNextGC()
	}, g)
}

// tune sets the limit for a heap of which that many bytes are in use.
func (g *gcTuner) tune(live int64) {
	limit := max(leastLimit, live*3/2+limitMargin)
	// To set it stops the world for a moment, so small changes are left.
	if change := limit - g.limit; change*10 > g.limit || -change*10 > g.limit {
		g.limit = limit
		g.set(limit)
	}
}
