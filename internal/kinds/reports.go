// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"log/slog"
	"maps"
	"slices"
)

// reports logs the verdicts on the objects of a kind, each once. It belongs to one goroutine.
type reports struct {
	kind, attribute string // as the log says them
	logger          *slog.Logger
	reported        map[string]report // by name
}

// report is a verdict that was logged, and the content of the object that it is on.
type report struct {
	content any // comparable
	verdict Verdict
}

func newReports(kind, attribute string, logger *slog.Logger) *reports {
	return &reports{kind: kind, attribute: attribute, logger: logger, reported: map[string]report{}}
}

// log logs a verdict, unless it was logged of the same content. at returns the location of an object, or nothing if
// that is not known, and may be nil.
func (r *reports) log(
	level slog.Level, name string, now report, says string, at func(name string) string,
) {
	if r.reported[name] == now {
		return
	}
	r.reported[name] = now
	attributes := []any{r.attribute, name}
	if at != nil {
		if place := at(name); place != "" {
			attributes = append(attributes, "at", place)
		}
	}
	attributes = append(attributes, "reason", now.verdict.Reason, "message", now.verdict.Message)
	r.logger.Log(context.Background(), level, r.kind+" "+says, attributes...)
}

// keep forgets the objects that exist no more.
func (r *reports) keep(exists func(name string) bool) {
	for _, name := range slices.Sorted(maps.Keys(r.reported)) {
		if !exists(name) {
			delete(r.reported, name)
			r.logger.Info(r.kind+" removed", r.attribute, name)
		}
	}
}
