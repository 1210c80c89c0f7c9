// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"sync/atomic"
	"testing"
	"time"
)

// elapsed returns a function that returns how much time has passed since, without the time in which the machine was too
// busy to run this process: timers that fire late show that.
func elapsed(t *testing.T) func() time.Duration {
	t.Helper()
	const step = 5 * time.Millisecond
	start := time.Now()
	var lost atomic.Int64
	go func() {
		for last := start; t.Context().Err() == nil; {
			time.Sleep(step)
			now := time.Now()
			if late := now.Sub(last) - step; late > step {
				lost.Add(int64(late))
			}
			last = now
		}
	}()
	return func() time.Duration { return time.Since(start) - time.Duration(lost.Load()) }
}
