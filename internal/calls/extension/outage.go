// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// firstPause is the time until a call that waits for an extension tries again the first time. It doubles up to
	// longestPause. Both vary by a fifth.
	firstPause   = 50 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// outage is whether an extension takes no connections, and since when. Its zero value is that it does. It is safe for
// concurrent use.
type outage struct{ current atomic.Pointer[downtime] }

type downtime struct {
	since time.Time
	over  chan struct{} // closed when there is a connection
}

// begin records that the extension takes no connections now, and returns since when that is so.
func (o *outage) begin(now time.Time) *downtime {
	begun := &downtime{since: now, over: make(chan struct{})}
	for {
		if d := o.current.Load(); d != nil {
			return d
		}
		if o.current.CompareAndSwap(nil, begun) {
			return begun
		}
	}
}

// end records that the extension took a connection. The calls that wait for it try again at once.
func (o *outage) end() {
	if o.current.Load() == nil { // as for most calls
		return
	}
	if d := o.current.Swap(nil); d != nil {
		close(d.over)
	}
}

// waits are those of one call for an extension that may be restarting.
type waits struct {
	outage *outage
	most   time.Duration // from the first call that was refused
	until  time.Time     // the call keeps the rest of its time for its answer; zero before the first wait
	delays *backoff.ExponentialBackOff
	waited bool
}

// wait waits before the next attempt to connect. All calls together wait for a few seconds from the first that was
// refused; after that, they fail at once until a connection is made, by a call or by a probe, so that an extension that
// stays away does not keep its callers busy. A call keeps half of its time for its answer. wait reports false, at once,
// if there is nothing to wait for.
func (w *waits) wait(ctx context.Context) bool {
	now := time.Now()
	if w.until.IsZero() {
		deadline, _ := ctx.Deadline() // every call has one
		w.until = now.Add(deadline.Sub(now) / 2)
		w.delays = backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.2), backoff.WithMaxInterval(longestPause))
	}
	d := w.outage.begin(now)
	again := now.Add(w.delays.NextBackOff())
	if again.After(w.until) || again.After(d.since.Add(w.most)) {
		return false
	}
	w.waited = true
	timer := time.NewTimer(again.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.over:
		return true
	case <-ctx.Done():
		return false
	}
}
