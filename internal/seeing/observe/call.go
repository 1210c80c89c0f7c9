// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Call is what is observed of one call from a caller. It belongs to the goroutine of the front.
type Call struct {
	ID       string
	Protocol string
	Hook     *catalog.Hook // nil if there is no such hook
	Asked    string        // the hook's name, or the one that the caller used
	Start    time.Time

	// Host is the caller's address without the port, and Caller its name, if it has one.
	Host, Caller string
	// Handler is the one that the caller names, and Namespace and Cluster are what its request is about, as far as known.
	Handler, Namespace, Cluster string
	// Received and Sent are the sizes of the bodies in bytes.
	Received, Sent int64
	// Err is the error that the caller gets.
	Err *hook.Error

	o     *Observer
	ctx   context.Context
	span  trace.Span
	label string // of metrics: "unknown" if there is no such hook, so that callers cannot make up labels
}

// Begin starts to observe a call, whose ID, Protocol, Hook and Asked are set. The context has its span.
func (o *Observer) Begin(ctx context.Context, c *Call, carrier propagation.TextMapCarrier) context.Context {
	c.o, c.Start, c.label, c.Asked = o, time.Now(), "unknown", text.Cut(c.Asked, limits.QuotedBytes)
	if c.Hook != nil {
		c.label, c.Asked = c.Hook.Hook, c.Hook.Hook
	}
	ctx, c.span = o.tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), "hookgate "+c.label,
		trace.WithSpanKind(trace.SpanKindServer))
	c.ctx = ctx
	if c.span.IsRecording() {
		c.span.SetAttributes(attribute.String("hookgate.call_id", c.ID), attribute.String("hookgate.hook", c.label),
			attribute.String("rpc.system", c.Protocol))
	}
	o.metrics.requestsInFlight.WithLabelValues(c.Protocol).Inc()
	return ctx
}

// Admitted records who calls, and whether that is admitted, in a word.
func (c *Call) Admitted(caller auth.Caller, result string, err error) {
	c.Caller = caller.Name
	c.o.metrics.authentications.WithLabelValues(string(caller.Method), result).Inc()
	if c.span.IsRecording() {
		c.span.SetAttributes(attribute.String("hookgate.caller", caller.Name))
	}
	if err == nil && c.o.logger.Enabled(c.ctx, slog.LevelDebug) {
		c.o.logger.LogAttrs(c.ctx, slog.LevelDebug, "caller admitted", slog.String("call_id", c.ID),
			slog.String("protocol", c.Protocol), slog.String("hook", c.Asked), slog.String("caller", caller.Name),
			slog.String("method", string(caller.Method)))
	}
}

// Fail sets the error that the caller gets. Its text is bounded, whatever it repeats of a request or an answer.
func (c *Call) Fail(err *hook.Error) {
	c.Err = err
	if len(err.Message) > limits.MergedMessageBytes {
		bounded := *err
		bounded.Message = redact.Bounded(bounded.Message, limits.MergedMessageBytes)
		c.Err = &bounded
	}
}

// About records the Cluster that a request is about, for the log. It keeps nothing of the request.
func (c *Call) About(request proto.Message) {
	namespace, cluster := extension.ClusterOf(request)
	c.Namespace, c.Cluster = strings.Clone(namespace), strings.Clone(cluster)
}

// End records the outcome of the call.
func (c *Call) End() {
	took := time.Since(c.Start)
	kind := ""
	if c.Err != nil {
		kind = c.Err.Kind.String()
		c.span.SetStatus(otelcodes.Error, c.Err.Error())
		attrs := append([]slog.Attr{
			slog.String("call_id", c.ID), slog.String("protocol", c.Protocol), slog.String("hook", c.Asked),
			slog.String("kind", kind), slog.String("error", c.Err.Error()), slog.Duration("took", took),
		}, c.place()...)
		if c.Caller != "" {
			attrs = append(attrs, slog.String("caller", c.Caller))
		}
		if cause := errors.Unwrap(c.Err); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
		level := c.o.callerErrors.level(cmp.Or(c.Caller, c.Host), c.Err.Kind, c.Start)
		c.o.logger.LogAttrs(c.ctx, level, "call failed", attrs...)
	}
	c.span.End()
	m := c.o.metrics
	m.requestsInFlight.WithLabelValues(c.Protocol).Dec()
	m.requests.WithLabelValues(c.Protocol, c.label, kind).Inc()
	m.requestDuration.WithLabelValues(c.Protocol, c.label).Observe(took.Seconds())
	m.requestReceivedBytes.WithLabelValues(c.Protocol, c.label).Add(float64(c.Received))
	m.requestSentBytes.WithLabelValues(c.Protocol, c.label).Add(float64(c.Sent))
}
