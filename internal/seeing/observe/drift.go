// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/seeing/drift"
)

// AnswerChanged records that a handler has answered an equal request otherwise than before.
func (o *Observer) AnswerChanged(c drift.Change) {
	name, m := c.Handler.Name, o.metrics
	series := m.series.begin(name)
	defer m.series.end(series)
	m.changedAnswers.WithLabelValues(c.Hook, name).Inc()
	o.extensions.Of(c.Handler).Failures.Add(activity.Failure{
		At: time.Now(), Hook: c.Hook, Handler: name, Outcome: activity.Changed, Kind: "Changed", Message: c.Message,
		CallID: c.CallID,
	})
	if o.auditLines.Allow() {
		o.logger.LogAttrs(context.Background(), slog.LevelWarn, "an extension answers otherwise than before",
			slog.String("hook", c.Hook), slog.String("handler", name), slog.String("namespace", c.Namespace),
			slog.String("cluster", c.Cluster), slog.String("call_id", c.CallID), slog.String("answer", c.Message))
	}
}

// AnswerNotCompared counts an answer that was not compared with earlier ones.
func (o *Observer) AnswerNotCompared() { o.metrics.notCompared.Inc() }
