// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package circuit

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/hookgate/hookgate/internal/limits"
)

// The defaults of Settings.
const (
	// DefaultConsecutiveFailures is what Envoy and Istio use to eject a host. A single failure is often chance; five
	// without a success in between are not.
	DefaultConsecutiveFailures = limits.DefaultFailuresInARow
	// DefaultFailureRatePercent opens the circuit of an extension that answers now and then. It is high, because an
	// extension of which one endpoint in three works still serves its callers' next attempts.
	DefaultFailureRatePercent = limits.DefaultFailurePercent
	// DefaultMinOpen is about the time in which a process restarts.
	DefaultMinOpen = limits.DefaultOpen
	// DefaultMaxOpen is also the longest time between two attempts to discover an extension.
	DefaultMaxOpen = limits.DefaultLongestOpen
)

// minCalls is the number of calls in the window below which their rate says nothing.
const minCalls = limits.CircuitCalls

// Settings configure a Circuit. They must not change.
type Settings struct {
	// Disabled keeps the circuit closed.
	Disabled bool
	// ConsecutiveFailures opens the circuit; at least 1.
	ConsecutiveFailures int
	// FailureRatePercent opens the circuit if at least that part of the calls of the last 30 s failed, and there were
	// at least 20; from 1 to 100.
	FailureRatePercent int
	// MinOpen is the time before the first probe. Each one that fails doubles it, up to MaxOpen. Both vary by a fifth.
	MinOpen, MaxOpen time.Duration
}

// Default returns the settings of an extension without a policy.
func Default() Settings {
	return Settings{
		ConsecutiveFailures: DefaultConsecutiveFailures, FailureRatePercent: DefaultFailureRatePercent,
		MinOpen: DefaultMinOpen, MaxOpen: DefaultMaxOpen,
	}
}

// exceeded reports whether so many failures of so many calls open the circuit.
func (s *Settings) exceeded(calls, failed int) bool {
	return calls >= minCalls && failed*100 >= calls*s.FailureRatePercent
}

func (s *Settings) delays() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(s.MinOpen),
		backoff.WithMultiplier(multiplier),
		backoff.WithRandomizationFactor(jitter),
		backoff.WithMaxInterval(max(s.MinOpen, s.MaxOpen)),
		backoff.WithMaxElapsedTime(0), // never give up
	)
}
