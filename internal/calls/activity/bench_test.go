// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
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
