// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		stat       string
		wantParent int
		wantCPU    time.Duration
		wantErr    bool
	}{
		"Plain": {
			reason:     "utime 150 and stime 25 ticks of 10 ms",
			stat:       "42 (hookgate) S 7 42 42 0 -1 4194560 1 2 3 4 150 25 8 9 20 0 1 0",
			wantParent: 7, wantCPU: 1750 * time.Millisecond,
		},
		"Name": {
			reason:     "a name may look like fields",
			stat:       "42 (nginx: ) S 1 (x) S 7 42 42 0 -1 4194560 1 2 3 4 1 1 8 9",
			wantParent: 7, wantCPU: 20 * time.Millisecond,
		},
		"Short": {reason: "without CPU time there is nothing to return", stat: "42 (x) S 7 42", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			parent, cpu, err := parseStat([]byte(tc.stat))
			if (err != nil) != tc.wantErr || parent != tc.wantParent || cpu != tc.wantCPU {
				t.Errorf("%s: got %d, %v, %v; want %d, %v, error %v",
					tc.reason, parent, cpu, err, tc.wantParent, tc.wantCPU, tc.wantErr)
			}
		})
	}
}

func TestParseMemory(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t  20 kB\nRssAnon:\t  8 kB\n")
	if got, err := parseMemory(status, "RssAnon"); err != nil || got != 8192 {
		t.Errorf("RssAnon is %d, %v, want 8192", got, err)
	}
	if got, err := parseMemory(status, "VmRSS"); err != nil || got != 20480 {
		t.Errorf("got %d, %v; want 20480", got, err)
	}
	if _, err := parseMemory([]byte("Name:\tx\nState:\tZ (zombie)\n"), "VmRSS"); err == nil {
		t.Error("a process that has ended has no resident memory, but there was no error")
	}
}
