// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "time"

// History has the calls of a range of time in equal steps, and what has changed in it. Only the page shows it.
type History struct {
	Now time.Time
	// Start is when the first step begins; the last one is still running. Started is when the process has: it knows of
	// nothing before.
	Start, Started time.Time
	Step           time.Duration
	Points         []HistoryPoint // of each step, oldest first
	Full           bool           // there was no room for these calls
	Changes        []Change       // oldest first
}

// HistoryPoint describes the calls of one step. Without calls, the percentiles are 0.
type HistoryPoint struct {
	Calls, Failures uint64
	P50, P99        Seconds
}

// Change is something that may explain why calls are different from what they were.
type Change struct {
	At   time.Time
	Text string
}
