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

// outage is the time for which an extension has taken no connections. Its zero value is none. It is safe for concurrent
// use.
type outage struct{ since atomic.Pointer[time.Time] }

// begin records that the extension takes no connections now, and returns since when that is so.
func (o *outage) begin(now time.Time) time.Time {
	o.since.CompareAndSwap(nil, &now)
	if since := o.since.Load(); since != nil {
		return *since
	}
	return now // it has ended meanwhile
}

// end records that the extension took a connection.
func (o *outage) end() {
	if o.since.Load() != nil { // most calls only look
		o.since.Store(nil)
	}
}

// waits are those of one call for an extension that may be restarting.
type waits struct {
	outage *outage
	most   time.Duration // from the first call that was refused
	until  time.Time     // zero before the first
	delays *backoff.ExponentialBackOff
	waited bool
}

// wait waits before the next attempt to connect. All calls together wait for a few seconds from the first that was refused;
// after that, they fail at once until a connection is made, by a call or by a probe, so that an extension that stays
// away does not keep its callers busy. A call keeps half of its time for its answer. wait reports false, at once, if
// there is nothing to wait for.
func (w *waits) wait(ctx context.Context) bool {
	now := time.Now()
	if w.until.IsZero() {
		w.until = w.outage.begin(now).Add(w.most)
		if deadline, ok := ctx.Deadline(); ok {
			if half := now.Add(deadline.Sub(now) / 2); half.Before(w.until) {
				w.until = half
			}
		}
		w.delays = backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.2), backoff.WithMaxInterval(longestPause))
	}
	pause := w.delays.NextBackOff()
	if now.Add(pause).After(w.until) {
		return false
	}
	w.waited = true
	return sleep(ctx, pause)
}

// sleep waits, and reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
