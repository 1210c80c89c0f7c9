// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestTuneGC(t *testing.T) {
	var set int64
	g := &gcTuner{set: func(limit int64) { set = limit }}
	for _, step := range []struct {
		reason string
		live   int64
		want   int64 // in MiB; 0 if it stays
	}{
		{"nothing in use: the least", 0, 128},
		{"little in use: the same", 4 << 20, 0},
		{"large bodies in flight: half as much again, and a margin", 200 << 20, 332},
		{"a little more: leave it", 204 << 20, 0},
		{"much more", 800 << 20, 1232},
		{"back to little", 4 << 20, 128},
	} {
		set = 0
		g.tune(step.live)
		if set != step.want<<20 {
			t.Errorf("%s: with %d bytes live it set %d MiB, want %d", step.reason, step.live, set>>20, step.want)
		}
	}
}
