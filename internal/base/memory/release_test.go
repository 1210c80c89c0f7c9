// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// held returns how much memory the process holds of the system's, in bytes.
func held() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// Memory goes back when a burst is over, not while it lasts, and not again without another one.
func TestReleaser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, done := new(Releaser), make(chan error)
		go func() { done <- r.Run(ctx) }()
		interval := func() {
			time.Sleep(releaseInterval)
			synctest.Wait()
		}
		interval()
		interval()
		before := held()
		for n := range 2 {
			runtime.KeepAlive(make([]byte, 8*burst))
			if interval(); held() < before+4*burst {
				t.Errorf("burst %d: %d bytes are held while it lasts, %d before", n, held(), before)
			}
			if interval(); held() > before+burst {
				t.Errorf("burst %d: %d bytes are held after it, %d before", n, held(), before)
			}
			released := r.released
			if interval(); r.released != released {
				t.Errorf("burst %d: memory is released again", n)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
