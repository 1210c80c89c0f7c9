// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent is how much the heap may grow between two collections, in percent, as long as it stays below the limit.
	gcPercent = 400
	// minHeap is the smallest heap that the limit has room for, in bytes: below it, collections are rare.
	minHeap = 116 << 20
	// heapMargin is added to five quarters of the live heap and one and a half times the stacks, in bytes.
	heapMargin = 20 << 20
)

// TuneGC makes collections fewer while little memory is in use, and more frequent while much is. A gateway that
// forwards small bodies has next to no live heap, so that Go's own rule, which collects whenever the heap has doubled,
// would have it collect all the time; and while large bodies are in flight, a heap that doubles needs too much memory.
// An operator who sets GOGC decides instead. The limit never exceeds most, which SetLimit returns.
//
// BenchmarkGC -benchtime 4s compares the collector's share of the CPU and the largest heap, on two busy cores, where
// the share with 150 MiB says little:
//
//	                              10 MiB live       150 MiB live
//	Go's default                  38 %,  67 MiB     48 %, 361 MiB
//	GOGC=400                      13 %, 377 MiB     45 %, 858 MiB
//	GOGC=400, GOMEMLIMIT=128MiB   28 %, 128 MiB     52 %, 342 MiB
//	tuned                         22 %, 125 MiB     52 %, 287 MiB
//
// With 16 bodies of 5 MB in flight, the gateway itself has at most 218 MiB resident, and 255 MiB with Go's default. To
// extensions over gRPC, which need another copy of them, it is 241 MB above idle, and 290 MB with one and a half times
// the live heap, for the same CPU time: collections are rare, because the memory of bodies is pooled.
// With small calls of 1,000 callers, each on a connection of its own, a call costs 317 µs of CPU and 249 MB are
// resident; with a limit that leaves no room for stacks and other memory besides the heap, it was 622 µs and 168 MB.
func TuneGC(lookupEnv func(string) (string, bool), most int64) {
	if _, ok := lookupEnv("GOGC"); ok {
		return
	}
	debug.SetGCPercent(gcPercent)
	t := &tuner{
		samples: newSamples(), set: func(limit int64) { debug.SetMemoryLimit(limit) }, most: most,
	}
	t.tune(t.read())
	t.afterNextGC()
}

// tuner sets the memory limit anew after each collection. The limit is soft: if the heap outgrows it before it is
// raised, Go collects more often, and no allocation fails. A fixed limit would do that for as long as more than it is
// in use.
type tuner struct {
	samples []metrics.Sample
	set     func(limit int64)
	limit   int64
	most    int64
}

// inUse is the memory of the process, in bytes.
type inUse struct {
	live   int64 // objects that the last collection has left
	stacks int64
	other  int64 // besides these and the heap
}

func newSamples() []metrics.Sample {
	return []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
}

func (t *tuner) read() inUse {
	metrics.Read(t.samples)
	value := func(i int) int64 { return int64(t.samples[i].Value.Uint64()) }
	u := inUse{live: value(0), stacks: value(1), other: value(2)}
	for i := range t.samples {
		if i != 0 && i != 2 {
			u.other -= value(i)
		}
	}
	return u
}

// afterNextGC runs the tuner after the next collection, and after each that follows: a collection finds an object that
// nothing refers to.
func (t *tuner) afterNextGC() {
	marker := new([16]byte)
	runtime.AddCleanup(marker, func(t *tuner) {
		t.tune(t.read())
		t.afterNextGC()
	}, t)
}

// tune sets the limit for what is in use. Go's limit counts all memory, but only the heap can make room: a thousand
// connections have 40 MiB of stacks, and would leave next to nothing of a limit that is meant for a heap. A collection
// looks at live objects and at stacks, so that both say how much it costs and how rare it should be.
func (t *tuner) tune(u inUse) {
	heap := max(minHeap, u.live*5/4+u.stacks*3/2+heapMargin)
	limit := min(heap+u.stacks+u.other, t.most)
	// Setting it stops the world for a moment, so small changes are left out.
	if change := limit - t.limit; change*10 > t.limit || -change*10 > t.limit {
		t.limit = limit
		t.set(limit)
	}
}
