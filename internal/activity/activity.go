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
)

// Outcome is what came of a call to a handler.
type Outcome int

// The outcomes.
const (
	Success Outcome = iota
	Refused         // the extension answered Failure
	Failed          // there was no answer that could be used
	Ignored         // the same, hidden by the failure policy Ignore
)

// String returns the outcome as it appears in metrics.
func (o Outcome) String() string { return [...]string{"success", "failure", "error", "ignored"}[o] }

// Call is a call to a handler that has ended.
type Call struct {
	Ended         time.Time
	Took, Timeout time.Duration
	Outcome       Outcome
	// Down means that the error is one of an extension that does not work, rather than of the request.
	Down bool
}

// Handlers keeps what calls to handlers have shown, by the registered names of the handlers. Its zero value has
// nothing. It is safe for concurrent use.
type Handlers struct{ handlers sync.Map } // of *handler

// handler is what is known of one handler.
type handler struct {
	mu          sync.Mutex
	window      window
	lastSuccess time.Time
	lastDown    time.Time
	since       time.Time
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
	switch {
	case c.Down:
		if h.lastDown.IsZero() || h.lastSuccess.After(h.lastDown) {
			h.since = c.Ended
		}
		h.lastDown = c.Ended
	case c.Outcome == Success || c.Outcome == Refused:
		if h.lastSuccess.IsZero() || h.lastDown.After(h.lastSuccess) {
			h.since = c.Ended
		}
		h.lastSuccess = c.Ended
	}
}

// Handler describes the calls to one handler.
type Handler struct {
	Calls
	Seen
}

// Seen is what the calls to a handler have shown about its extension.
type Seen struct {
	// LastSuccess is when the extension last answered, be it Failure, and LastDown when a call last failed because the
	// extension does not work. They are zero if that has not happened.
	LastSuccess, LastDown time.Time
	// Since is when it began to work, or not to, whichever was seen last.
	Since time.Time
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
	return Handler{Calls: h.window.calls(now), Seen: h.seen()}
}

// Seen returns what Of does, without the calls, which it does not add up.
func (r *Handlers) Seen(name string) Seen {
	v, ok := r.handlers.Load(name)
	if !ok {
		return Seen{}
	}
	h, _ := v.(*handler)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen()
}

func (h *handler) seen() Seen {
	return Seen{LastSuccess: h.lastSuccess, LastDown: h.lastDown, Since: h.since}
}

// DeletePartialMatch forgets the handler that the label "handler" names, as a vector of Prometheus does.
func (r *Handlers) DeletePartialMatch(labels prometheus.Labels) int {
	if _, ok := r.handlers.LoadAndDelete(labels["handler"]); !ok {
		return 0
	}
	return 1
}
