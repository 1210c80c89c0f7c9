// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEvery checks that there is a look after each interval, none before, and none once the context is done.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var looks atomic.Int32
		done := make(chan error)
		go func() { done <- every(ctx, func() { looks.Add(1) }) }()
		for want := range 3 {
			time.Sleep(checkInterval - 1)
			synctest.Wait()
			if got := int(looks.Load()); got != want {
				t.Errorf("%d looks before interval %d ends", got, want+1)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
		}
		cancel()
		if err := <-done; err != nil || looks.Load() != 3 {
			t.Errorf("%d looks and %v, want 3 and nil", looks.Load(), err)
		}
	})
}
