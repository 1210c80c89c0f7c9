// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// failuresInARow make a handler Failing, however many calls before them succeeded; as many calls near the timeout make
// it Slow. It is the number of failures that opens a circuit by default.
const failuresInARow = limits.DefaultFailuresInARow

// evidence is all that the state of an extension depends on.
type evidence struct {
	server    activity.Server
	circuit   circuit.Status // of the server
	discovery activity.Discovery
	handlers  []handlerEvidence
}

// handlerEvidence is all that the state of a handler depends on, besides its server.
type handlerEvidence struct {
	name    string
	timeout time.Duration
	seen    activity.Seen
	circuit circuit.Status
}

// verdict is a state, since when it is so, if that is known, and why it is not Up.
type verdict struct {
	state  status.State
	since  time.Time
	reason string
}

// judge returns the state of an extension, and those of its handlers in their order. The worst of what is known now
// decides. No state began before what was last seen to the contrary.
func judge(e *evidence) (extension verdict, handlers []verdict) {
	failing, slow, bad := -1, -1, [2]int{}
	for i := range e.handlers {
		v := judgeHandler(&e.handlers[i], e.server)
		handlers = append(handlers, v)
		switch v.state {
		case status.Failing:
			failing, bad[0] = longest(handlers, failing, i), bad[0]+1
		case status.Slow:
			slow, bad[1] = longest(handlers, slow, i), bad[1]+1
		}
	}
	switch open := e.circuit.State != circuit.Closed; {
	case open || e.server.Gone():
		extension = verdict{status.Down, e.server.Since, e.server.Message}
		if !e.server.Gone() {
			extension.since = later(e.server.Up, e.circuit.Since)
			extension.reason = "circuit is open: calls to the extension fail with " + e.circuit.Kind.String()
		}
		for i := range handlers {
			handlers[i] = extension
		}
	case e.discovery.Message != "":
		extension = verdict{status.Failing, e.discovery.Since, e.discovery.Message}
	case failing >= 0:
		extension = e.of(handlers, failing, bad[0])
	case slow >= 0:
		extension = e.of(handlers, slow, bad[1])
	case !e.server.Up.IsZero():
		extension = verdict{state: status.Up, since: e.server.Since}
		for i := range e.handlers { // since the last of them recovered
			if s := &e.handlers[i].seen; s.Failures == 0 {
				extension.since = later(extension.since, s.RecoveredAt)
			}
		}
	default:
		extension = verdict{state: status.Unknown}
	}
	return extension, handlers
}

// of returns the verdict on an extension because of n of its handlers, of which it names one.
func (e *evidence) of(handlers []verdict, i, n int) verdict {
	v := handlers[i]
	v.reason = e.handlers[i].name + ": " + v.reason
	if n > 1 {
		v.reason += fmt.Sprintf("; and %d more of %s", n-1, text.Plural(len(handlers), "handler"))
	}
	return v
}

// longest returns which of two verdicts has been so for longer; i is the one that comes later by name.
func longest(handlers []verdict, before, i int) int {
	if before < 0 || handlers[i].since.Before(handlers[before].since) {
		return i
	}
	return before
}

// judgeHandler returns the state of a handler whose server is there. Calls that failed before the server was back say
// nothing about the process that is there now.
func judgeHandler(e *handlerEvidence, server activity.Server) verdict {
	s := &e.seen
	restarted := !server.Down.IsZero() && s.LastFailed.Before(server.Since)
	switch {
	case e.circuit.State != circuit.Closed:
		return verdict{status.Failing, later(e.circuit.Since, s.FailingSince),
			"the handler's circuit is open: " + cmp.Or(s.Message, "calls fail with "+e.circuit.Kind.String())}
	case !restarted && isMost(s.Failures, s.Lately.Failures, s.Lately.Calls):
		return verdict{status.Failing, s.FailingSince, fmt.Sprintf("%d of %s failed lately: %s", s.Lately.Failures,
			text.Plural(int(min(s.Lately.Calls, 1<<31)), "call"), s.Message)}
	case isMost(s.Near, s.Lately.Near, s.Lately.Calls):
		return verdict{status.Slow, s.SlowSince, fmt.Sprintf(
			"%d of %s lately took at least eight tenths of the timeout of %s",
			s.Lately.Near, text.Plural(int(min(s.Lately.Calls, 1<<31)), "call"), e.timeout)}
	case s.LastSuccess.IsZero():
		return verdict{state: status.Unknown}
	}
	return verdict{state: status.Up, since: s.RecoveredAt}
}

// isMost reports whether calls are bad now: the last ones were, row of them, and either these are many, or they were at
// least half of the calls in the last minutes.
func isMost(row int, bad, calls uint64) bool {
	return row > 0 && calls > 0 && (row >= failuresInARow || 2*bad >= calls)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
