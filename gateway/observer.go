// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

// Observer observes every call twice, as it comes from a caller and as it goes to each handler. It records metrics and
// trace spans, logs calls that fail, and keeps what has happened lately for a Reporter. It is safe for concurrent use.
type Observer struct {
	metrics    *Metrics
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
	losses     *convert.Losses
	misspelt   *convert.Losses // of the members of answers, each once

	handlers     activity.Handlers
	holds        activity.Holds
	discoveries  activity.Discoveries
	servers      activity.Servers
	callerErrors callerErrors
}

// NewObserver returns an Observer that records the losses of conversions in losses. The provider decides whether spans
// are exported; the trace context of callers always reaches extensions.
func NewObserver(m *Metrics, p trace.TracerProvider, l *slog.Logger, losses *convert.Losses) *Observer {
	tracer := p.Tracer("github.com/hookgate/hookgate/gateway")
	o := &Observer{
		metrics: m, tracer: tracer, propagator: Propagator(), logger: l, losses: losses, misspelt: convert.NewLosses(nil),
	}
	m.series.vectors = append(m.series.vectors, &o.handlers)
	return o
}

// begin starts to observe a call. h is nil if no hook has the name asked; callID is the id that the caller proposes.
func (o *Observer) begin(
	ctx context.Context, protocol, asked string, h *catalog.Hook, carrier propagation.TextMapCarrier, callID string,
) (context.Context, *call) {
	in := &call{
		o: o, hook: h, id: callIDOr(callID), protocol: protocol, label: "unknown",
		asked: text.Cut(asked, limits.QuotedBytes), start: time.Now(),
	}
	if h != nil {
		in.label, in.asked = h.Hook, h.Hook
	}
	ctx = withCall(o.propagator.Extract(ctx, carrier), in)
	ctx, in.span = o.tracer.Start(ctx, "hookgate "+in.label, trace.WithSpanKind(trace.SpanKindServer))
	in.ctx = ctx
	if in.span.IsRecording() {
		in.span.SetAttributes(attribute.String("hookgate.call_id", in.id), attribute.String("hookgate.hook", in.label),
			attribute.String("rpc.system", protocol))
	}
	o.metrics.requestsInFlight.WithLabelValues(protocol).Inc()
	return ctx, in
}

// fail sets the error that the caller gets. Its text is bounded, whatever it repeats of a request or an answer.
func (in *call) fail(err error) {
	in.err = asError(err)
	if len(in.err.Message) > limits.MergedMessageBytes {
		bounded := *in.err
		bounded.Message = text.Bounded(bounded.Message, limits.MergedMessageBytes)
		in.err = &bounded
	}
}

// end records the outcome of the call.
func (in *call) end() {
	in.memory.Release()
	in.admission.Release()
	took := time.Since(in.start)
	kind := ""
	if in.err != nil {
		kind = in.err.Kind.String()
		in.span.SetStatus(otelcodes.Error, in.err.Error())
		attrs := []slog.Attr{
			slog.String("call_id", in.id), slog.String("protocol", in.protocol), slog.String("hook", in.asked),
			slog.String("kind", kind), slog.String("error", in.err.Error()), slog.Duration("took", took),
		}
		if in.admission.Caller.Name != "" {
			attrs = append(attrs, slog.String("caller", in.admission.Caller.Name))
		}
		if cause := errors.Unwrap(in.err); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
		level := in.o.callerErrors.level(cmp.Or(in.admission.Caller.Name, in.host), in.err.Kind, in.start)
		in.o.logger.LogAttrs(in.ctx, level, "call failed", attrs...)
	}
	in.span.End()
	m := in.o.metrics
	m.requestsInFlight.WithLabelValues(in.protocol).Dec()
	m.requests.WithLabelValues(in.protocol, in.label, kind).Inc()
	m.requestDuration.WithLabelValues(in.protocol, in.label).Observe(took.Seconds())
	m.requestReceivedBytes.WithLabelValues(in.protocol, in.label).Add(float64(in.received))
	m.requestSentBytes.WithLabelValues(in.protocol, in.label).Add(float64(in.sent))
}
