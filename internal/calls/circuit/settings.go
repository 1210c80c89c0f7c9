// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package circuit

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/hookgate/hookgate/internal/base/limits"
)

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
		ConsecutiveFailures: limits.DefaultFailuresInARow, FailureRatePercent: limits.DefaultFailurePercent,
		MinOpen: limits.DefaultOpen, MaxOpen: limits.DefaultLongestOpen,
	}
}

// exceeded reports whether so many failures of so many calls open the circuit.
func (s *Settings) exceeded(calls, failed int) bool {
	return calls >= limits.CircuitCalls && failed*100 >= calls*s.FailureRatePercent
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
