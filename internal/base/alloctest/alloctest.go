// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alloctest holds decoders to a bound of memory for each input, in tests and fuzz targets.
package alloctest

import (
	"runtime"
	"testing"
)

// Bound is the number of bytes that an input may make its decoder allocate: Base for any input, and PerByte more for
// each of its bytes. What is freed again counts, so that memory never exceeds the bound at any moment.
type Bound struct{ Base, PerByte uint64 }

// Of returns the bound for an input of so many bytes.
func (b Bound) Of(size int) uint64 { return b.Base + b.PerByte*uint64(size) }

// Check runs decode for an input of so many bytes, and reports an error if it allocates more than the bound. What other
// goroutines allocate meanwhile counts.
func (b Bound) Check(t testing.TB, size int, decode func()) {
	t.Helper()
	before := allocated()
	decode()
	if took := allocated() - before; took > b.Of(size) {
		t.Errorf("an input of %d bytes makes its decoder allocate %d bytes, want at most %d", size, took, b.Of(size))
	}
}

// allocated returns how many bytes the process has allocated so far. The metrics of the runtime, which are cheaper,
// have small objects late, up to half a MiB of them.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
