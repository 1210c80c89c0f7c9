// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkRecord is what each call to a handler pays.
func BenchmarkRecord(b *testing.B) {
	var h Handlers
	c := Call{Ended: time.Now(), Took: time.Millisecond, Timeout: time.Second}
	name := "handler.extension"
	b.ReportAllocs()
	for b.Loop() {
		h.Record(name, c)
	}
}

// BenchmarkCollect is what a History pays every 15 s for 1,000 handlers that were all called; calls pay nothing for it
// but BenchmarkRecord.
func BenchmarkCollect(b *testing.B) {
	var handlers Handlers
	h := NewHistory(&handlers, func(string) (string, bool) { return "extension", true })
	at := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range 1000 {
			handlers.Record(strconv.Itoa(i), Call{Ended: at, Took: time.Millisecond})
		}
		at = at.Add(Slot)
		b.StartTimer()
		h.Collect(at)
	}
}
