// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentOf(t *testing.T) {
	for _, tc := range []struct {
		reason string
		live   uint64 // in MiB
		want   int
	}{
		{"nothing is known before the first collection", 0, 400},
		{"little is in use: the most", 20, 400},
		{"more: up to a small heap", 56, 100},
		{"large bodies in flight: a quarter and a margin", 200, 35},
		{"a budget that is used up", 1000, 27},
	} {
		if got := percentOf(tc.live << 20); got != tc.want {
			t.Errorf("%s: %d MiB may grow by %d %%, want %d %%", tc.reason, tc.live, got, tc.want)
		}
	}
}

// The pace follows what each collection has left, unless GOGC is set.
func TestSetPace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(90))
	percent := func() int {
		p := debug.SetGCPercent(90)
		debug.SetGCPercent(p)
		return p
	}
	if SetPace(func(name string) (string, bool) { return "", name == "GOGC" }); percent() != 90 {
		t.Errorf("with GOGC, the heap may grow by %d %%", percent())
	}
	SetPace(func(string) (string, bool) { return "", false })
	live := make([]byte, 200<<20)
	deadline := time.Now().Add(time.Minute)
	for percent() > 40 && time.Now().Before(deadline) {
		runtime.GC()
	}
	runtime.KeepAlive(live)
	if percent() > 40 {
		t.Errorf("with 200 MiB live, the heap may grow by %d %%", percent())
	}
	for percent() < mostPercent && time.Now().Before(deadline) {
		runtime.GC()
	}
	if percent() < mostPercent {
		t.Errorf("when they are gone, it may grow by %d %%", percent())
	}
}
