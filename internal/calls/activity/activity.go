// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activity keeps what has happened lately in this process, for people who want to see it: the numbers and the
// latencies of the calls to each handler in the last minutes, the last failures and the last discovery of each
// extension, and the Clusters that wait for a handler. It forgets by itself, and everything in it is bounded.
package activity

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Outcome is what came of a call to a handler.
type Outcome int

// The outcomes.
const (
	Success Outcome = iota
	Refused         // the extension answered Failure
	Failed          // there was no answer that could be used
	Ignored         // the same, hidden by the failure policy Ignore
	Changed         // not of a call: an equal request was answered otherwise before
)

// String returns the outcome as it appears in metrics.
func (o Outcome) String() string {
	return [...]string{"success", "failure", "error", "ignored", "changed"}[o]
}

// Call is a call to a handler that has ended.
type Call struct {
	Ended         time.Time
	Took, Timeout time.Duration
	Outcome       Outcome
	// Message says why it is no Success. It is empty of a call that was not made, because earlier ones failed.
	Message string
	// Gone means that it failed because the server is gone, which says nothing about the handler.
	Gone bool
}

// Handlers keeps what calls to handlers have shown, by the registered names of the handlers. Its zero value has
// nothing. It is safe for concurrent use.
type Handlers struct{ handlers sync.Map } // of *handler

// handler is what is known of one handler.
type handler struct {
	mu     sync.Mutex
	window window
	seen   Seen
}

// Record records a call to a handler.
func (r *Handlers) Record(name string, c Call) {
	v, ok := r.handlers.Load(name)
	if !ok {
		v, _ = r.handlers.LoadOrStore(name, &handler{})
	}
	h, _ := v.(*handler)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.add(c)
	if !c.Gone {
		h.seen.record(&c)
	}
}

// Handler describes the calls to one handler.
type Handler struct {
	Calls
	Seen
}

// Seen is what the calls to a handler have shown, but for those that found no server.
type Seen struct {
	// LastSuccess is when the handler last answered, be it Failure; zero if it never has.
	LastSuccess time.Time
	// RecoveredAt is when it answered first after its last failure; zero if it has not failed.
	RecoveredAt time.Time
	// Failures is the number of calls that failed in a row, the last one included. FailingSince and LastFailed are when
	// the first and the last of them did, and Message says why.
	Failures                 int
	FailingSince, LastFailed time.Time
	Message                  string
	// Near is the number of calls in a row that came near the timeout, and SlowSince when the first of them did.
	Near      int
	SlowSince time.Time
	// Lately are the calls in the window, those that found no server, too.
	Lately Point
}

func (s *Seen) record(c *Call) {
	if c.Outcome == Success || c.Outcome == Refused {
		s.LastSuccess = c.Ended
	}
	if c.Outcome == Success {
		if s.Failures > 0 {
			s.RecoveredAt = c.Ended
		}
		s.Failures = 0
	} else {
		if s.Failures == 0 {
			s.FailingSince = c.Ended
		}
		s.Failures++
		s.LastFailed = c.Ended
		if c.Message != "" {
			s.Message = redact.Bounded(c.Message, limits.FailureBytes)
		}
	}
	switch {
	case !IsNear(c.Took, c.Timeout):
		s.Near = 0
	case s.Near == 0:
		s.Near, s.SlowSince = 1, c.Ended
	default:
		s.Near++
	}
}

// Of returns what is known of a handler, up to now.
func (r *Handlers) Of(name string, now time.Time) Handler {
	v, ok := r.handlers.Load(name)
	if !ok {
		return Handler{}
	}
	h, _ := v.(*handler)
	h.mu.Lock()
	defer h.mu.Unlock()
	of := Handler{Calls: h.window.calls(now), Seen: h.seen}
	of.Lately = of.Total()
	return of
}

// Seen returns what Of does, without the calls, at a small part of its cost.
func (r *Handlers) Seen(name string, now time.Time) Seen {
	v, ok := r.handlers.Load(name)
	if !ok {
		return Seen{}
	}
	h, _ := v.(*handler)
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.seen
	seen.Lately = h.window.total(now)
	return seen
}

// DeletePartialMatch forgets the handler that the label "handler" names, as a vector of Prometheus does.
func (r *Handlers) DeletePartialMatch(labels prometheus.Labels) int {
	if _, ok := r.handlers.LoadAndDelete(labels["handler"]); !ok {
		return 0
	}
	return 1
}
