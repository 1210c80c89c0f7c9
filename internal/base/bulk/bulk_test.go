// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bulk

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCopy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, step - 1, step, step + 1, 3*step + 5} {
		from := make([]byte, n)
		for i := range from {
			from[i] = byte(random.Uint32())
		}
		to := make([]byte, n+1)
		if Copy(to, from); !bytes.Equal(to[:n], from) || to[n] != 0 {
			t.Errorf("%d bytes are not those that were copied", n)
		}
		if c := Clone(from); !bytes.Equal(c, from) || n > 0 && &c[0] == &from[0] {
			t.Errorf("%d bytes are not a copy", n)
		}
		text := String(from)
		if clear(from); text != string(to[:n]) {
			t.Errorf("a string of %d bytes is not a copy", n)
		}
	}
}

// A collection has to stop every goroutine. The benchmark is of collections while another goroutine copies 20 MiB into new
// memory again and again.
func BenchmarkCollectionBesideCopies(b *testing.B) {
	const size = 20 << 20
	from := make([]byte, size)
	for name, copied := range map[string]func() []byte{
		"one piece": func() []byte { return bytes.Clone(from) }, "steps": func() []byte { return Clone(from) },
	} {
		b.Run(name, func(b *testing.B) {
			var ended atomic.Bool
			var running sync.WaitGroup
			running.Go(func() {
				for !ended.Load() {
					runtime.KeepAlive(copied())
				}
			})
			for b.Loop() {
				runtime.GC()
			}
			ended.Store(true)
			running.Wait()
		})
	}
}
