// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"math/bits"
	"sync"
)

const (
	// smallest and largest are the sizes that are pooled: below, the allocator is as good; above, nothing is expected.
	smallest = 16 << 10
	largest  = 32 << 20
	// steps is how many sizes there are for each doubling, so that at most a fifth of the memory is too much.
	steps = 4
)

// firstOctave is the power of two at which the first class begins: smallest is 2^(firstOctave+1).
const firstOctave = 13

// Pool keeps memory of bodies that were released, by size. The zero value is ready. A nil Pool keeps nothing. It is safe
// for concurrent use.
type Pool struct {
	classes [12 * steps]sync.Pool // of *[]byte
}

// get returns a slice with at least n bytes of capacity. What is in it is left over from others.
func (p *Pool) get(n int) []byte {
	class, size := classOf(n)
	if p == nil || class < 0 {
		return make([]byte, n)
	}
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		return (*b)[:size]
	}
	return make([]byte, size)
}

// put gives back a slice that get returned.
func (p *Pool) put(b []byte) {
	class, size := classOf(cap(b))
	if p == nil || class < 0 || size != cap(b) {
		return
	}
	b = b[:0]
	p.classes[class].Put(&b)
}

// classOf returns the pool for n bytes and the size of what is in it; -1 if there is none.
func classOf(n int) (class, size int) {
	if n < smallest || n > largest {
		return -1, n
	}
	octave := bits.Len(uint(n-1)) - 1 // 2^octave < n <= 2^(octave+1)
	step := 1 << octave / steps
	k := (n - 1<<octave + step - 1) / step // n <= 2^octave + k·step, 1 <= k <= steps
	return (octave-firstOctave)*steps + k - 1, 1<<octave + k*step
}
