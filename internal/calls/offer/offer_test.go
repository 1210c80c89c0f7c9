// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"testing"
	"time"
)

// The timeout that Discovery announces leaves room for the margin, in whole seconds and never more than 30.
func TestOuterTimeoutAtItsLimits(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 500 * time.Millisecond: time.Second, 501 * time.Millisecond: 2 * time.Second, 1: time.Second,
		28500 * time.Millisecond: 29 * time.Second, 28500*time.Millisecond + 1: 30 * time.Second, 29 * time.Second: 30 * time.Second,
		29500 * time.Millisecond: 30 * time.Second, 29500*time.Millisecond + 1: 30 * time.Second, 30 * time.Second: 30 * time.Second,
	} {
		if got := outerTimeout(timeout); got != want {
			t.Errorf("for a handler of %s, discovery has a timeout of %s, want %s", timeout, got, want)
		}
	}
}
