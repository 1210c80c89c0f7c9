// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import "sync/atomic"

// refs counts the references to connections, so that they close with the last one, and not before.
type refs struct {
	n   atomic.Int64
	end func()
}

// init takes the first reference. The last release calls end.
func (r *refs) init(end func()) {
	r.end = end
	r.n.Store(1)
}

// acquire takes a reference, and reports false if the last one has been released.
func (r *refs) acquire() bool {
	for {
		n := r.n.Load()
		if n == 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back.
func (r *refs) release() {
	if r.n.Add(-1) == 0 {
		r.end()
	}
}
