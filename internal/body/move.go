// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package body

// moveStep is the number of bytes that are copied without a place to stop.
const moveStep = 64 << 10

// move copies from to the beginning of to, which is at least as long.
//
// Go stops a goroutine where a function begins, or in Go code by a signal, but nowhere in a copy, so that signals hardly
// ever find a loop of copies elsewhere. The collector has to stop each goroutine once, and meanwhile keeps a processor busy:
// 20 MiB in one piece, whose memory the system provides page by page, keep all other calls waiting for up to 0.1 s.
func move(to, from []byte) {
	for len(from) > 0 {
		n := moveSome(to, from)
		to, from = to[n:], from[n:]
	}
}

// moveSome copies a step, as a function that is called: where it begins, the goroutine can stop.
//
//go:noinline
func moveSome(to, from []byte) int { return copy(to, from[:min(len(from), moveStep)]) }

// clone returns a copy of b.
func clone(b []byte) []byte {
	c := make([]byte, len(b))
	move(c, b)
	return c
}
