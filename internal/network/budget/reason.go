// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"time"

	"github.com/hookgate/hookgate/hook"
)

// reason says why a reservation is refused.
type reason int

const (
	nothing reason = iota
	totalUsed
	callerUsed
	extensionUsed
	queueFull
	reasons // the number of reasons
)

// describe returns the value of the metrics' label, and the text of the error.
func (r reason) describe() (name, text string) {
	switch r {
	case callerUsed:
		return "caller", "the caller's share of the gateway's memory for calls is used up"
	case extensionUsed:
		return "extension", "the extension's share of the gateway's memory for calls is used up"
	case queueFull:
		return "waiting", "too many calls wait for memory of the gateway"
	default:
		return "total", "the gateway's memory for calls is used up"
	}
}

// refuse counts a refusal and returns its error, whose text is the same for the same reason.
func (b *Budget) refuse(r reason) error {
	b.refused[r]++
	_, text := r.describe()
	return hook.Errorf(hook.Overloaded, "%s: try again later", text).WithRetryAfter(retryAfter)
}

// Usage is the state of a Budget.
type Usage struct {
	Limit, Used int64 // bytes
	Waiting     int   // calls
	// Refused is the number of refused reservations by reason: total, caller, extension and waiting.
	Refused map[string]int64
	// Waited is the number of pieces of heavy work that have waited for a turn, and WaitedFor how long together.
	Waited    int64
	WaitedFor time.Duration
}

// Usage returns the state of b. A nil Budget has none.
func (b *Budget) Usage() Usage {
	u := Usage{Refused: make(map[string]int64, int(reasons))}
	if b == nil {
		b = &Budget{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u.Limit, u.Used, u.Waiting = b.limit, b.used, len(b.waiting)
	if b.scheduler != nil {
		u.Waited, u.WaitedFor = b.scheduler.waited.Load(), time.Duration(b.scheduler.waitedFor.Load())
	}
	for r := totalUsed; r < reasons; r++ {
		name, _ := r.describe()
		u.Refused[name] = b.refused[r]
	}
	return u
}
