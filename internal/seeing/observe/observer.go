// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe keeps what a gateway sees of its calls, in metrics, spans, log lines and memory, and reports it.
package observe

import (
	"log/slog"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// Observer observes every call twice, as it comes from a caller and as it goes to each handler. It records metrics and
// trace spans, logs calls that fail, and keeps what has happened lately for a Reporter. It is safe for concurrent use.
type Observer struct {
	metrics    *Metrics
	extensions *extensionstate.States
	tracer     trace.Tracer
	logger     *slog.Logger
	losses     *convert.Losses
	misspelt   *convert.Losses // of the members of answers, each once
	auditLines *rate.Limiter

	handlers     activity.Handlers
	holds        activity.Holds
	clusters     *activity.Clusters
	discoveries  activity.Discoveries
	servers      activity.Servers
	callerErrors callerErrors
	history      *activity.History
	changes      changes
}

// NewObserver returns an Observer of calls to the extensions in the registry of m, which records the losses of
// conversions in losses. The provider decides whether spans are exported; the trace context of callers always reaches
// extensions.
func NewObserver(m *Metrics, p trace.TracerProvider, l *slog.Logger, losses *convert.Losses) *Observer {
	tracer := p.Tracer("github.com/hookgate/hookgate/gateway")
	extensions := extensionstate.New(m.series.snapshots)
	m.extensions.Store(extensions)
	o := &Observer{
		metrics: m, extensions: extensions, tracer: tracer, logger: l, losses: losses, misspelt: convert.NewLosses(nil),
		clusters:   activity.NewClusters(),
		auditLines: rate.NewLimiter(limits.AuditLinesPerSecond, limits.AuditLines),
	}
	o.history = activity.NewHistory(&o.handlers, owner(m.series.snapshots))
	m.series.vectors = append(m.series.vectors, &o.handlers)
	return o
}

// Extensions returns the states of the extensions.
func (o *Observer) Extensions() *extensionstate.States { return o.extensions }
