// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// footprint is what a gateway occupies while no call is under way.
type footprint struct {
	resident int64 // bytes of memory
	live     int64 // bytes of the heap that are in use after a collection
	// These are of the gateway itself: it has no connection to a caller, and at most one to each good extension.
	goroutines, descriptors, files int
	series                         map[string]bool // of the metrics
}

// pauseLoad ends all calls and connections to the gateway until the load is resumed, and lets the gateway collect its
// garbage.
func (w *fixture) pauseLoad(t *testing.T) {
	t.Helper()
	get(t, "http://"+w.callers+"/pause")
	w.rest.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections() // of waits for /readyz
	w.collect(t)                              // pools keep what they hold for one collection
}

// collect lets the gateway collect its garbage.
func (w *fixture) collect(t *testing.T) {
	t.Helper()
	get(t, "http://"+w.gateway.profiler+"/debug/pprof/heap?gc=1")
}

// resumeLoad lets the healthy callers go on.
func (w *fixture) resumeLoad(t *testing.T) {
	t.Helper()
	get(t, "http://"+w.callers+"/resume")
}

// footprint returns what the gateway occupies now, while the load is paused.
func (w *fixture) footprint(t *testing.T) footprint {
	t.Helper()
	w.good.get(t, "/quiet") // closes the connections that the gateway keeps for calls
	w.collect(t)
	g, f := w.gateway, footprint{series: map[string]bool{}}
	var live float64
	for line := range strings.Lines(g.get(t, "/metrics")) {
		_, _ = fmt.Sscanf(line, "go_goroutines %d", &f.goroutines)
		_, _ = fmt.Sscanf(line, "process_open_fds %d", &f.descriptors)
		_, _ = fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &live)
		if strings.HasPrefix(line, "hookgate_") {
			f.series[line[:strings.LastIndexByte(line, ' ')]] = true
		}
	}
	f.live = int64(live)
	var err error
	if f.resident, err = process.Resident([]int{g.pid}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(g.work)
	if err != nil {
		t.Fatal(err)
	}
	f.files = len(written)
	return f
}

// usual returns what the gateway occupies most of the time during two seconds, while the load is paused: it asks its
// extensions for their handlers every second, and the metrics count the goroutines that gather them.
func (w *fixture) usual(t *testing.T) footprint {
	t.Helper()
	var goroutines, descriptors []int
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		f := w.footprint(t)
		goroutines, descriptors = append(goroutines, f.goroutines), append(descriptors, f.descriptors)
		if time.Now().After(end) {
			f.goroutines, f.descriptors = median(goroutines), median(descriptors)
			return f
		}
	}
}

func median(counts []int) int {
	slices.Sort(counts)
	return counts[len(counts)/2]
}

// follow takes a later footprint over, but for goroutines and descriptors that have come since.
func (f *footprint) follow(next footprint) {
	next.goroutines, next.descriptors = min(f.goroutines, next.goroutines), min(f.descriptors, next.descriptors)
	*f = next
}

// liveSlack is the memory, in bytes, that may be in use besides a tenth: a call of discovery may be under way.
const liveSlack = 1 << 20

// left returns what was left behind between two footprints.
func (f *footprint) left(after *footprint) []string {
	var left []string
	more := func(what string, before, after, allowed int64) {
		if after > before+allowed {
			left = append(left, fmt.Sprintf("%s: %d, before %d", what, after, before))
		}
	}
	more("goroutines", int64(f.goroutines), int64(after.goroutines), 0)
	more("descriptors", int64(f.descriptors), int64(after.descriptors), 0)
	more("files", int64(f.files), int64(after.files), 0)
	more("KiB of the heap", f.live>>10, after.live>>10, (f.live/10+liveSlack)>>10)
	more("KiB resident", f.resident>>10, after.resident>>10, f.resident/10>>10)
	for _, series := range f.newSeries(after) {
		left = append(left, "metric series "+series)
	}
	return left
}

// newSeries returns the series that a fault has left behind. Counters of calls by kind have a series from the first
// call of a kind on, those of calls by protocol from the first call over it, and those of discoveries from the first
// one that ended in a way: these are not left by a fault unless they name an extension that is gone.
func (f *footprint) newSeries(after *footprint) []string {
	var left []string
	for series := range after.series {
		counts := strings.HasPrefix(series, "hookgate_request") || strings.HasPrefix(series, "hookgate_authentications_total{") ||
			strings.HasPrefix(series, "hookgate_discoveries_total{") ||
			strings.HasPrefix(series, "hookgate_handler_calls_total{") && strings.Contains(series, ".good-")
		if !f.series[series] && (!counts || strings.Contains(series, "faulty-")) {
			left = append(left, series)
		}
	}
	return left
}

// resetPeak makes peak begin anew.
func (g *gateway) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.pid), []byte("5"), 0) // without it, the peak is of all rows
}

// peak returns the most memory that was resident since resetPeak; 0 if the gateway has ended.
func (g *gateway) peak() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	_, _ = fmt.Sscanf(strings.TrimSpace(rest), "%d", &kib)
	return kib << 10
}
