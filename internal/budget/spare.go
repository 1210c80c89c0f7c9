// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

// What is kept besides calls, such as answers of extensions, has an account of its own with a small share of the
// budget, and gets memory only while calls use less than half of it.
const (
	spareShare = 12 // percent
	spareBelow = 50 // percent
)

// spare is the account of what is kept besides calls. No caller has an empty name.
var spare = Account{}

// Spare reserves memory for something that may outlive the call, and reports whether there is some to spare. Release
// gives it back, and must be called once.
func (r *Reservation) Spare(bytes int64) (release func(), ok bool) {
	if r == nil {
		return func() {}, true
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := int64(0)
	if a := b.accounts[spare]; a != nil {
		kept = a.used
	}
	if kept+bytes > b.limit*spareShare/100 || b.used+bytes > b.limit*spareBelow/100 {
		return nil, false
	}
	b.take(spare, bytes)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.give(spare, bytes)
	}, true
}
