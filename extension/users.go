// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import "sync/atomic"

// users counts who uses connections, so that they close when the last one has gone, and not before.
type users struct {
	n   atomic.Int64
	end func()
}

// begin counts the first user. end is called when there is none any more.
func (u *users) begin(end func()) {
	u.end = end
	u.n.Store(1)
}

// acquire adds a user, and reports false if the last one has gone.
func (u *users) acquire() bool {
	for {
		n := u.n.Load()
		if n == 0 {
			return false
		}
		if u.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release removes a user.
func (u *users) release() {
	if u.n.Add(-1) == 0 {
		u.end()
	}
}
