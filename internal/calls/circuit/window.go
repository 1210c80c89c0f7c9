// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package circuit

import (
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// slots and slotTime make a window of 30 s, which forgets a tenth of itself at a time.
	slots    = 10
	slotTime = limits.CircuitWindow / slots
)

// window counts the calls of the last 30 s, and those that failed.
type window struct {
	slots  [slots]struct{ calls, failed int }
	begun  time.Time // when the current slot began
	at     int       // the current slot
	calls  int       // in all slots
	failed int
}

// add counts a call and returns the counts with it.
func (w *window) add(now time.Time, failed bool) (calls, failures int) {
	if since := now.Sub(w.begun); since >= slots*slotTime {
		*w = window{begun: now}
	} else {
		for ; since >= slotTime; since -= slotTime {
			w.begun = w.begun.Add(slotTime)
			w.at = (w.at + 1) % slots
			old := &w.slots[w.at]
			w.calls, w.failed = w.calls-old.calls, w.failed-old.failed
			old.calls, old.failed = 0, 0
		}
	}
	current := &w.slots[w.at]
	current.calls++
	w.calls++
	if failed {
		current.failed++
		w.failed++
	}
	return w.calls, w.failed
}
