// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"unsafe"
)

func TestTuneFollowsWhatIsInUse(t *testing.T) {
	var set int64
	g := &tuner{set: func(limit int64) { set = limit }, most: 1200 << 20}
	for _, step := range []struct {
		reason              string
		live, stacks, other int64 // in MiB
		want                int64 // in MiB; 0 if it stays
	}{
		{"nothing in use: the least heap, and what is not heap", 0, 1, 11, 128},
		{"little in use: the same", 4, 1, 11, 0},
		{"the most for which the least is enough", 75, 1, 11, 0},
		{"a little more than that: leave it", 83, 1, 11, 0},
		{"a thousand connections: all of their stacks, and half of them again", 60, 40, 10, 205},
		{"large bodies in flight: a quarter more, and a margin", 200, 8, 12, 302},
		{"a little more: leave it", 204, 8, 12, 0},
		{"much more: the most that the process may use", 1000, 8, 12, 1200},
		{"back to little", 4, 1, 11, 128},
	} {
		set = 0
		g.tune(inUse{live: step.live << 20, stacks: step.stacks << 20, other: step.other << 20})
		if set != step.want<<20 {
			t.Errorf("%s: it set %d MiB, want %d", step.reason, set>>20, step.want)
		}
	}
}

// What is read are the parts of the memory of this process: they change with what it uses, and the heap's free memory is
// none of them.
func TestReadTellsStacksFromObjects(t *testing.T) {
	g := &tuner{samples: newSamples()}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection shrinks stacks
	runtime.GC()
	before := g.read()
	objects := make([]byte, 64<<20)
	stop := make(chan struct{})
	var deep, ended sync.WaitGroup
	for range 500 {
		deep.Add(1)
		ended.Go(func() {
			fillStack()
			deep.Done()
			<-stop
		})
	}
	deep.Wait()
	during := g.read()
	if more := during.stacks - before.stacks; more < 500*stackBytes {
		t.Errorf("%d bytes of stacks more, want at least %d", more, 500*stackBytes)
	}
	if more := during.other - before.other; more > 8<<20 {
		t.Errorf("%d bytes that are neither stacks nor heap", more)
	}
	runtime.GC()
	if more := g.read().live - before.live; more < 64<<20 || more > 72<<20 {
		t.Errorf("%d bytes live more, want 64 MiB", more)
	}
	runtime.KeepAlive(objects)
	close(stop)
	ended.Wait()
}

// stackBytes is the least that a stack has grown to after fillStack.
const stackBytes = 16 << 10

//go:noinline
func fillStack() byte {
	var b [stackBytes]byte
	for i := range b {
		b[i] = byte(i)
	}
	return b[len(b)/2]
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
	for _, most := range []int64{math.MaxInt64, minHeap - 1} {
		TuneGC(func(string) (string, bool) { return "", false }, most)
		percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
		if percent != gcPercent || limit > most || limit < min(minHeap, most) || limit > 2*minHeap {
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
			{"GOGC=400,limit=128MiB", func() { debug.SetGCPercent(gcPercent); debug.SetMemoryLimit(128 << 20) }},
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
