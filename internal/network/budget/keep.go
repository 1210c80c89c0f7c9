// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import "github.com/hookgate/hookgate/internal/base/limits"

// What is kept besides calls, such as answers of extensions, has an account of its own with a small share of the
// budget, and gets memory only while calls use less than half of it.
const (
	keptShare = limits.KeptShare // percent
	keepBelow = limits.KeptBelow // percent
)

// kept is the account of what is kept besides calls. No caller has an empty name.
var kept = Account{}

// Keep reserves memory for something that may outlive the call, and reports whether there is some to spare. Release
// gives it back, and must be called once.
func (r *Reservation) Keep(bytes int64) (release func(), ok bool) {
	if r == nil {
		return func() {}, true
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	used := int64(0)
	if a := b.accounts[kept]; a != nil {
		used = a.used
	}
	if used+bytes > b.limit*keptShare/100 || b.used+bytes > b.limit*keepBelow/100 {
		return nil, false
	}
	b.take(kept, bytes)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.give(kept, bytes)
	}, true
}
