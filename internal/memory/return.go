// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// maxExcess is the memory, in bytes, that a process keeps after a burst of calls besides what it had before. Without
// load, the runtime collects every two minutes, and then takes minutes to return what it has freed.
const maxExcess = 64 << 20

// Returner gives memory back to the system once a burst of large calls is over. Under load it does nothing: the
// collector then runs by itself, and what it frees is needed again. A Returner belongs to one goroutine.
type Returner struct {
	floor     uint64 // bytes that were held when memory was last returned, or fewer since
	allocated uint64 // bytes that had been allocated at the last look
}

// Run returns memory until ctx is done.
func (r *Returner) Run(ctx context.Context) error {
	r.floor, r.allocated = used()
	return every(ctx, func() { r.look() })
}

// look returns memory if much more is held than before the burst, unless so much has been allocated since the last look
// that a collection is near. It reports whether it did.
func (r *Returner) look() bool {
	held, allocated := used()
	recent := allocated - r.allocated
	r.floor, r.allocated = min(r.floor, held), allocated
	if held < r.floor+maxExcess || recent > (held-r.floor)/2 {
		return false
	}
	runtime.GC() // pools keep what they hold for one collection
	debug.FreeOSMemory()
	r.floor, r.allocated = used()
	return true
}

// used returns how much memory the process holds of the system's, and how much it has allocated since its start, in
// bytes.
func used() (held, allocated uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}
