// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// readProgram maps every page of the program's file that may be read, as a start of the whole gateway does of many.
func readProgram(b testing.TB) {
	b.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		b.Fatal(err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = maps.Close() }()
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	page := make([]byte, 1)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[len(fields)-1] != self || !strings.HasPrefix(fields[1], "r") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseInt(from, 16, 64)
		end, err2 := strconv.ParseInt(to, 16, 64)
		if err != nil || err2 != nil {
			b.Fatal(err, err2)
		}
		for at := start; at < end; at += int64(os.Getpagesize()) {
			if _, err := memory.ReadAt(page, at); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestReleaseUnmapsTheProgram holds that the pages go, and that the program runs on.
func TestReleaseUnmapsTheProgram(t *testing.T) {
	readProgram(t)
	before := resident()
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := resident(); before == 0 || after > before-1<<20 {
		t.Errorf("%d KiB resident after %d KiB, want at least 1 MiB less", after>>10, before>>10)
	}
}

// TestReleaserReleasesOnceReady holds that nothing is released before, and that Run ends with its context.
func TestReleaserReleasesOnceReady(t *testing.T) {
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	readProgram(t)
	before := resident()
	go func() { done <- Releaser{Ready: ready, Logger: slog.New(slog.DiscardHandler)}.Run(ctx) }()
	close(ready)
	for deadline := time.Now().Add(time.Minute); resident() > before-1<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d KiB resident, as before", resident()>>10)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Releaser{Ready: make(chan struct{}), Logger: slog.New(slog.DiscardHandler)}).Run(canceled); err != nil {
		t.Error(err)
	}
}

// BenchmarkRelease reports the resident memory of this program, all of whose file is mapped, before and after a
// release, and the time that it takes. The program is smaller than the gateway, which has 55 MiB before and 23 MiB
// after it.
func BenchmarkRelease(b *testing.B) {
	var before, after int64
	for b.Loop() {
		b.StopTimer()
		readProgram(b)
		before = resident()
		b.StartTimer()
		if err := releaseProgram(); err != nil {
			b.Fatal(err)
		}
		after = resident()
	}
	b.ReportMetric(float64(before)/(1<<20), "MiB-before")
	b.ReportMetric(float64(after)/(1<<20), "MiB-after")
}
