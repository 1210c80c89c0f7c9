// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// maxAttempts bounds the attempts of one call that the extension has refused, or may have begun to read, and of
	// discovery. They are over within a third of a second. For a connection, calls wait longer: see waits.
	maxAttempts = limits.Attempts
	// retryDelay is the pause before the second attempt; the third one waits four times as long. Both vary by a fifth.
	retryDelay = 50 * time.Millisecond
	// retryPrice is how many calls pay for one retry, and retryCredit how many retries an extension has at the start,
	// and after many calls without one.
	retryPrice  = limits.RetryPart
	retryCredit = limits.RetryCredit
)

// retryBudget lets one call in ten be repeated, so that retries never make much more of the load that an extension does
// not bear. It is the throttle of gRPC (https://github.com/grpc/proposal/blob/master/A6-client-retries.md), without a
// clock. Its zero value has all its credit. It is safe for concurrent use.
type retryBudget struct{ debt atomic.Int64 } // in calls

// earn records a call.
func (b *retryBudget) earn() {
	for {
		debt := b.debt.Load()
		if debt == 0 || b.debt.CompareAndSwap(debt, debt-1) {
			return
		}
	}
}

// spend takes the price of a retry, and reports whether there was enough.
func (b *retryBudget) spend() bool {
	for {
		debt := b.debt.Load()
		if debt+retryPrice > retryPrice*retryCredit {
			return false
		}
		if b.debt.CompareAndSwap(debt, debt+retryPrice) {
			return true
		}
	}
}

// retries are those of one call. Only what the extension cannot have processed is repeated, or what it has asked to
// repeat.
type retries struct {
	budget   *retryBudget
	attempts int // that have been made
	delays   *backoff.ExponentialBackOff
}

// newRetries returns the retries of a call that is about to begin.
func newRetries(b *retryBudget) retries {
	b.earn()
	return retries{budget: b}
}

// wait waits for the next attempt, at least as long as the extension has asked for. It reports false, at once, if there
// is no other attempt, or none within the deadline of ctx.
func (r *retries) wait(ctx context.Context, least time.Duration) bool {
	if r.attempts++; r.attempts >= maxAttempts {
		return false
	}
	if r.delays == nil {
		r.delays = backoff.NewExponentialBackOff(backoff.WithInitialInterval(retryDelay), backoff.WithMultiplier(4),
			backoff.WithRandomizationFactor(0.2))
	}
	pause := max(least, r.delays.NextBackOff())
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause || ctx.Err() != nil || !r.budget.spend() {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter returns how long a server asks to wait before the same request is sent again, and reports whether it asks
// for that: only 503 with a Retry-After says that the request was not processed.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	if resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
