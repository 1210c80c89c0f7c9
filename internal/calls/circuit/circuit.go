// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package circuit

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/hookgate/hookgate/hook"
)

const (
	// multiplier makes each interval between two probes from the last, and jitter is the part by which it varies at
	// random in both directions, so that the replicas of a gateway do not probe together.
	multiplier = 2
	jitter     = 0.2
)

// State is the state of a Circuit.
type State int

// The states, with the values that the metric has.
const (
	Closed   State = iota // calls pass
	HalfOpen              // the next call passes as a probe, or a probe is under way
	Open                  // calls are refused
)

// String returns the state as it appears in metrics.
func (s State) String() string { return [...]string{"closed", "half_open", "open"}[s] }

// Outcome is what a call says about what the circuit stands for, an extension or a handler.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // nothing: the call was ended by its caller, or was never sent
	Success                // it answers
	Failure                // it does not answer, or nothing that can be used
)

// Status describes a Circuit.
type Status struct {
	State State
	// Kind is the kind of the failure that opened the circuit. It stays the same until the circuit closes, whatever
	// probes fail with.
	Kind hook.Kind
	// Since is when the circuit opened or closed; zero if it has never opened. Probes do not change it.
	Since time.Time
	// Failed is when a call failed last.
	Failed time.Time
	// Entered counts the changes to each state.
	Entered [Open + 1]uint64
}

// Pass is the permission to make one call. Its holder returns it with Leave, once.
type Pass struct {
	epoch uint64
	probe bool
}

// Probe reports whether the call decides if an open circuit closes.
func (p Pass) Probe() bool { return p.probe }

// Circuit is the circuit of one extension or one handler. Its zero value is closed. It is safe for concurrent use.
type Circuit struct {
	mu       sync.Mutex
	status   Status
	epoch    uint64 // counts changes, so that a call that began before one does not count after it
	failures int    // one after the other
	window   window
	cause    error // of the last failure

	delays  *backoff.ExponentialBackOff // nil while closed
	probeAt time.Time
	probing bool
}

// Enter returns a Pass for a call, or reports false if the call must not be made. after is then the time until a probe
// is due, and 0 while one is under way.
func (c *Circuit) Enter(s *Settings) (p Pass, after time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Disabled && c.status.State != Closed {
		c.close()
	}
	if c.status.State == Closed {
		return Pass{epoch: c.epoch}, 0, true
	}
	if c.status.State == Open {
		if after = time.Until(c.probeAt); after > 0 {
			return Pass{}, after, false
		}
		c.enter(HalfOpen)
	}
	if c.probing {
		return Pass{}, 0, false
	}
	c.probing = true
	return Pass{epoch: c.epoch, probe: true}, 0, true
}

// Leave records the outcome of a call. For a Failure, err is its error. changed reports whether the circuit has opened
// or closed; a probe that fails leaves it open.
func (c *Circuit) Leave(p Pass, s *Settings, o Outcome, err error) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.epoch != c.epoch {
		return false
	}
	if o == Failure {
		c.cause, c.status.Failed = err, time.Now()
	}
	if p.probe {
		c.probing = false
		switch o {
		case Success:
			c.close()
			return true
		case Failure:
			c.open()
		case Unknown:
		}
		return false
	}
	if s.Disabled || o == Unknown {
		return false
	}
	calls, failed := c.window.add(time.Now(), o == Failure)
	if o == Success {
		c.failures = 0
		return false
	}
	if c.failures++; c.failures < s.ConsecutiveFailures && !s.exceeded(calls, failed) {
		return false
	}
	c.status.Kind, c.status.Since, c.delays = hook.KindOf(err), time.Now(), s.delays()
	c.open()
	return true
}

// Answered lets the next call pass as a probe at once, because the extension has answered something else than a call.
// It does not shorten the interval that follows if the probe fails.
func (c *Circuit) Answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.State == Open {
		c.probeAt = time.Now()
	}
}

// Close closes the circuit, because what it stands for is known to be back, and reports whether it was not closed.
func (c *Circuit) Close() (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.State == Closed {
		return false
	}
	c.close()
	return true
}

// Status returns the state of the circuit now. An open circuit whose probe is due is half-open.
func (c *Circuit) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	if s.State == Open && time.Until(c.probeAt) <= 0 {
		s.State = HalfOpen
	}
	return s
}

// Cause returns the last failure, and its kind that opened the circuit.
func (c *Circuit) Cause() (kind hook.Kind, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status.Kind, c.cause
}

func (c *Circuit) open() {
	c.enter(Open)
	c.epoch++
	c.probeAt = time.Now().Add(min(c.delays.NextBackOff(), c.delays.MaxInterval))
}

func (c *Circuit) close() {
	c.enter(Closed)
	c.epoch++
	c.status.Since = time.Now()
	c.failures, c.window, c.delays, c.cause = 0, window{}, nil, nil
	c.probing = false // one that is under way is of the epoch before
}

func (c *Circuit) enter(s State) {
	c.status.State = s
	c.status.Entered[s]++
}
