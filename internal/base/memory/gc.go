// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostPercent is how much the heap may grow between two collections, in percent, while it is small.
	mostPercent = 400
	// smallHeap is the size in bytes up to which a heap is small.
	smallHeap = 112 << 20
	// heapMargin is added to five quarters of the live heap of a larger one, in bytes.
	heapMargin = 20 << 20
)

// SetPace makes collections fewer while little memory is in use, and more frequent while much is. An operator who sets
// GOGC decides instead.
//
// At Go's own pace, a call of 4 KB takes 12 % more CPU time over HTTP/1.1, 9 % more over HTTP/2, and 14 % more to an
// extension over gRPC, and callers who send objects of 19 MiB fill 504 MiB of a container with 512 MiB, where it is
// 399 MiB. With GOGC=50, which would hold that, a call takes 17 and 21 % more. With GOGC=400 alone, calls take no less,
// and answers of 30 MiB fill 508 MiB, where it is 342 MiB. The price is 25 MB more in use while calls are small.
func SetPace(lookupEnv func(string) (string, bool)) {
	if _, ok := lookupEnv("GOGC"); !ok {
		setPercent()
	}
}

// setPercent sets how much the heap may grow until the next collection, and again after each that follows: a collection
// finds an object that nothing refers to.
func setPercent() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(percentOf(live[0].Value.Uint64()))
	runtime.AddCleanup(new([16]byte), func(struct{}) { setPercent() }, struct{}{})
}

// percentOf returns how much a heap of that many live bytes may grow, in percent.
func percentOf(live uint64) int {
	live = max(live, 1<<20)
	size := max(smallHeap, live*5/4+heapMargin)
	return int(min((size-live)*100/live, mostPercent))
}
