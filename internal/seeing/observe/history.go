// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// owner returns the extension of a registered handler, unless the handler has no server.
func owner(snapshots registry.Snapshots) func(handler string) (extension string, ok bool) {
	return func(handler string) (string, bool) {
		e, ok := snapshots.Snapshot().Registered(handler)
		if !ok || e.Registration.InProcess != nil {
			return "", false
		}
		return e.Registration.Name, true
	}
}

// History returns the calls of a range of time up to now, and what has changed in it: of a handler, of an extension, or
// of all if both are empty.
func (r *Reporter) History(extension, handler string, of activity.Range) *status.History {
	now := time.Now()
	steps, ok := r.Observer.history.Of(extension, handler, of, now)
	end := now.Truncate(of.Step).Add(of.Step)
	h := &status.History{
		Now: now, Start: end.Add(-of.Length), Step: of.Step, Started: r.Started, Full: !ok,
		Points: make([]status.HistoryPoint, len(steps)),
	}
	for i, s := range steps {
		h.Points[i] = status.HistoryPoint{
			Calls: s.Calls, Failures: s.Failures, P50: status.InSeconds(s.P50), P99: status.InSeconds(s.P99),
		}
	}
	if r.Started.After(h.Start) {
		h.Changes = append(h.Changes, status.Change{At: r.Started, Text: "process started, " + r.Version})
	}
	for _, c := range r.Observer.changes.Since(h.Start, extension) {
		h.Changes = append(h.Changes, status.Change{At: c.At, Text: c.Text})
	}
	return h
}
