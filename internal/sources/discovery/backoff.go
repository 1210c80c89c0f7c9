// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// DefaultResync is how often extensions that answer are discovered again. A discovery is one small call, so that
// once a minute costs nothing, and an upgrade behind the same URL is seen soon.
const DefaultResync = time.Minute

// Backoff configures the wait between a failed discovery and the next attempt. Discovery is tried until it succeeds,
// and a success starts over. The parameters are defined in
// https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md.
type Backoff struct {
	// BaseDelay is the wait after the first failure.
	BaseDelay time.Duration
	// Multiplier makes the next wait from the last, at least 1.
	Multiplier float64
	// Jitter is the part of a wait by which it varies at random in both directions, from 0 to less than 1.
	Jitter float64
	// MaxDelay bounds every wait.
	MaxDelay time.Duration
}

// DefaultBackoff waits 0.5 s at first and 60 s at most, each time 1.6 times longer, give or take a fifth.
func DefaultBackoff() Backoff {
	return Backoff{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Minute}
}

// Check returns an error unless b is usable.
func (b Backoff) Check() error {
	switch {
	case b.BaseDelay <= 0:
		return errors.New("backoff: BaseDelay must be more than 0")
	case b.MaxDelay < b.BaseDelay:
		return errors.New("backoff: MaxDelay must not be less than BaseDelay")
	case b.Multiplier < 1:
		return errors.New("backoff: Multiplier must be at least 1")
	case b.Jitter < 0 || b.Jitter >= 1:
		return errors.New("backoff: Jitter must be at least 0 and less than 1")
	}
	return nil
}

// Delays computes the waits of one ExtensionConfig. It belongs to one goroutine.
type Delays struct {
	exponential *backoff.ExponentialBackOff
	limit       time.Duration
}

// Delays returns the waits of an ExtensionConfig that has not failed yet.
func (b Backoff) Delays() *Delays {
	return &Delays{
		limit: b.MaxDelay,
		exponential: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(b.BaseDelay),
			backoff.WithMultiplier(b.Multiplier),
			backoff.WithRandomizationFactor(b.Jitter),
			backoff.WithMaxInterval(b.MaxDelay),
			backoff.WithMaxElapsedTime(0), // never give up
		),
	}
}

// Next returns how long to wait after a failure.
func (d *Delays) Next() time.Duration { return min(d.exponential.NextBackOff(), d.limit) }

// Reset starts over, after a success.
func (d *Delays) Reset() { d.exponential.Reset() }
