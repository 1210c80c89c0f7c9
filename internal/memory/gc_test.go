// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"unsafe"
)

func TestTuneFollowsTheLiveHeap(t *testing.T) {
	var set int64
	g := &tuner{set: func(limit int64) { set = limit }, most: 1200 << 20}
	for _, step := range []struct {
		reason string
		live   int64
		want   int64 // in MiB; 0 if it stays
	}{
		{"nothing in use: the least", 0, 128},
		{"little in use: the same", 4 << 20, 0},
		{"the most for which the least is enough", 64 << 20, 0},
		{"a tenth more than that: leave it", 72 << 20, 0},
		{"large bodies in flight: half as much again, and a margin", 200 << 20, 332},
		{"a little more: leave it", 204 << 20, 0},
		{"much more: the most that the process may use", 800 << 20, 1200},
		{"back to little", 4 << 20, 128},
	} {
		set = 0
		g.tune(step.live)
		if set != step.want<<20 {
			t.Errorf("%s: with %d bytes live it set %d MiB, want %d", step.reason, step.live, set>>20, step.want)
		}
	}
}

// reset gives the runtime back its defaults.
func reset() {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
}

func TestOperatorDecides(t *testing.T) {
	defer reset()
	reset()
	TuneGC(func(n string) (string, bool) { return "", n == "GOGC" }, math.MaxInt64)
	if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != 100 || limit != math.MaxInt64 {
		t.Errorf("with GOGC: GC percent %d, limit %d", percent, limit)
	}
	for most, want := range map[int64]int64{math.MaxInt64: minLimit, minLimit - 1: minLimit - 1} {
		TuneGC(func(string) (string, bool) { return "", false }, most)
		if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != gcPercent || limit != want {
			t.Errorf("without it, and at most %d: GC percent %d, limit %d", most, percent, limit)
		}
	}
}

// BenchmarkGC does with memory what a gateway does: small objects stay live, as registrations do, and each call makes
// 30 KiB of garbage. It reports the collector's share of the CPU and the largest heap: with Go's defaults, with
// GOGC=400 alone, with a fixed limit as well, and tuned.
func BenchmarkGC(b *testing.B) {
	type node struct {
		next *node
		_    [48]byte
	}
	for _, liveMiB := range []int{10, 150} {
		var live *node
		for range liveMiB << 20 / int(unsafe.Sizeof(node{})) {
			live = &node{next: live}
		}
		for _, mode := range []struct {
			name string
			set  func()
		}{
			{"default", reset},
			{"GOGC=400", func() { debug.SetGCPercent(gcPercent) }},
			{"GOGC=400,limit=128MiB", func() { debug.SetGCPercent(gcPercent); debug.SetMemoryLimit(minLimit) }},
			{"tuned", func() { TuneGC(func(string) (string, bool) { return "", false }, math.MaxInt64) }},
		} {
			b.Run(fmt.Sprintf("live=%dMiB/%s", liveMiB, mode.name), func(b *testing.B) {
				reset()
				runtime.GC()
				mode.set()
				defer reset()
				var bodies [16][]byte // in flight
				before, largest := read(), uint64(0)
				for i := 0; b.Loop(); i++ {
					body := make([]byte, 30<<10)
					for at := 0; at < len(body); at += 64 {
						body[at] = byte(i)
					}
					bodies[i%len(bodies)] = body
					if i%64 == 0 {
						largest = max(largest, read().heap)
					}
				}
				after := read()
				b.ReportMetric(100*(after.gc-before.gc)/(after.used-before.used), "gc-%")
				b.ReportMetric(float64(largest)/(1<<20), "MiB-heap")
			})
		}
		runtime.KeepAlive(live)
	}
}

type usage struct {
	gc, used float64 // CPU seconds
	heap     uint64
}

func read() usage {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(s)
	gc := s[0].Value.Float64() - s[1].Value.Float64() // what idle processors do costs nothing
	return usage{gc: gc, used: gc + s[2].Value.Float64(), heap: s[3].Value.Uint64()}
}
