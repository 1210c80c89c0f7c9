// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
)

// The outcomes of a call to a handler.
const (
	outcomeSuccess = "success" // status Success
	outcomeFailure = "failure" // status Failure, the extension's own
	outcomeError   = "error"   // no usable response; the kind says why
	outcomeIgnored = "ignored" // such an error, hidden by the failure policy Ignore
)

// Handlers returns the link that records every call to a handler: metrics, a span, log lines, and what it shows about
// the handler and its extension. A nil Observer has a link without effect.
func (o *Observer) Handlers() extension.Link {
	return func(next extension.Caller) extension.Caller {
		if o == nil {
			return next
		}
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			if c.Hook.Singleton() {
				return next(ctx, c) // it is no call to a handler, and counted as a request
			}
			name, h := c.Handler.Name, c.Hook.Hook
			m := o.metrics
			ctx, span := o.tracer.Start(ctx, "handler "+name, trace.WithSpanKind(trace.SpanKindClient))
			defer span.End()
			series := m.series.begin(name)
			defer m.series.end(series)
			inFlight := m.handlerInFlight.WithLabelValues(h, name)
			inFlight.Inc()
			defer inFlight.Dec()
			start := time.Now()
			result, err := next(ctx, c)
			took := time.Since(start)

			outcome, kind := outcomeSuccess, ""
			switch {
			case err != nil:
				outcome, kind = outcomeError, hook.KindOf(err).String()
				span.SetStatus(otelcodes.Error, err.Error())
			case result.Ignored != nil:
				outcome, kind = outcomeIgnored, hook.KindOf(result.Ignored).String()
				m.ignoredFailures.WithLabelValues(h, name, kind).Inc()
				span.AddEvent("failure ignored",
					trace.WithAttributes(attribute.String("error", result.Ignored.Error())))
				o.logIgnored(ctx, c, result.Ignored, kind, took)
			default:
				if message, refused := catalog.FailureOf(result.Response); refused {
					outcome = outcomeFailure
					o.logFailure(ctx, c, message, took)
				}
			}
			if result.Audited != nil {
				m.audited.WithLabelValues(h, name, result.Audited.Outcome).Inc()
				span.AddEvent("audited", trace.WithAttributes(attribute.String("answer", result.Audited.String())))
				o.logAudited(ctx, c, result.Audited, took)
			}
			if result.LiftedBy != "" {
				span.AddEvent("hold lifted", trace.WithAttributes(attribute.String("policy", result.LiftedBy)))
				o.logLifted(ctx, c, result, took)
			}
			if result.Waited {
				waited := "failed"
				if result.Connected {
					waited = "served"
				}
				m.waits.WithLabelValues(h, name, waited).Inc()
			}
			if len(result.Lost) > 0 {
				m.lostMembers.WithLabelValues(h, name).Add(float64(len(result.Lost)))
				o.logLost(ctx, c, result.Lost)
			}
			o.logMisspelt(ctx, c, result.Misspelt)
			m.handlerCalls.WithLabelValues(h, name, outcome, kind).Inc()
			m.handlerDuration.WithLabelValues(h, name).Observe(took.Seconds())
			near := m.nearTimeout.WithLabelValues(h, name) // its first value, 0, counts too
			if activity.IsNear(took, c.Handler.Handler.Timeout) {
				near.Inc()
			}
			m.handlerSentBytes.WithLabelValues(h, name).Add(float64(result.Sent))
			m.handlerReceivedBytes.WithLabelValues(h, name).Add(float64(result.Received))
			o.remember(c, result, err, start, took)
			return result, err
		}
	}
}

func (o *Observer) logIgnored(ctx context.Context, c extension.Call, err error, kind string, took time.Duration) {
	attrs := append(failedAttrs(c, took), slog.String("kind", kind), slog.String("error", err.Error()))
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	o.logger.LogAttrs(ctx, slog.LevelWarn, "failure ignored", attrs...)
}

// CircuitChanged logs that the circuit of an extension, or of a handler of it, or of a Cluster at that handler, has
// opened because of err, or closed. A nil Observer logs nothing.
func (o *Observer) CircuitChanged(extensionConfig, handler, cluster string, s circuit.Status, err error) {
	if o == nil {
		return
	}
	what, attrs := "extension", []any{"extensionConfig", extensionConfig}
	if handler != "" {
		what, attrs = "handler", append(attrs, "handler", handler)
	}
	if cluster != "" {
		what, attrs = "handler for a Cluster", append(attrs, "cluster", cluster)
	}
	if s.State == circuit.Closed {
		o.logger.Info("circuit is closed: the "+what+" answers again", attrs...)
		return
	}
	attrs = append(attrs, "kind", s.Kind.String(), "error", err)
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, "cause", cause)
	}
	o.logger.Warn("circuit is open: calls to the "+what+" are refused, except probes", attrs...)
}

// logLost logs the losses of a conversion, once for each handler and path.
func (o *Observer) logLost(ctx context.Context, c extension.Call, lost []string) {
	for _, path := range o.losses.Record(c.Handler.Registration.Name, c.Handler.Handler.Name, lost) {
		attrs := []slog.Attr{
			slog.String("hook", c.Hook.Hook), slog.String("handler", c.Handler.Name), slog.String("path", path),
			slog.String("implements", c.Handler.Handler.Hook.APIVersion()),
			slog.String("understands", c.Handler.Handler.ClusterAPIVersion),
		}
		o.logger.LogAttrs(ctx, slog.LevelWarn, "conversion loses a member (logged once)", withID(c, attrs)...)
	}
}

// logMisspelt logs the misspelt members of answers, once for each handler and member.
func (o *Observer) logMisspelt(ctx context.Context, c extension.Call, misspelt []string) {
	for _, text := range o.misspelt.Record(c.Handler.Registration.Name, c.Handler.Handler.Name, misspelt) {
		attrs := []slog.Attr{
			slog.String("hook", c.Hook.Hook), slog.String("handler", c.Handler.Name), slog.String("problem", text),
		}
		o.logger.LogAttrs(ctx, slog.LevelWarn, "answer has an unknown member, which has no effect (logged once)",
			withID(c, attrs)...)
	}
}

func (o *Observer) logFailure(ctx context.Context, c extension.Call, message string, took time.Duration) {
	attrs := append(failedAttrs(c, took), slog.String("message", message))
	o.logger.LogAttrs(ctx, slog.LevelError, "handler answered Failure", attrs...)
}

// logAudited logs what a rule would have answered. Callers that are not held ask again whenever they reconcile.
func (o *Observer) logAudited(ctx context.Context, c extension.Call, would *extension.Audited, took time.Duration) {
	if o.auditLines.Allow() {
		o.logger.LogAttrs(ctx, slog.LevelWarn, "the rule would have answered if its action were not Audit",
			append(callAttrs(c, took), slog.String("namespace", would.Namespace), slog.String("cluster", would.Cluster),
				slog.String("answer", would.String()))...)
	}
}

// logLifted logs a hold that a policy has lifted. Cluster API may ask again for as long as another handler holds.
func (o *Observer) logLifted(ctx context.Context, c extension.Call, result extension.Result, took time.Duration) {
	if o.auditLines.Allow() {
		namespace, cluster := c.Cluster()
		o.logger.LogAttrs(ctx, slog.LevelWarn, "hold lifted",
			append(callAttrs(c, took), slog.String("namespace", namespace), slog.String("cluster", cluster),
				slog.String("policy", result.LiftedBy), slog.String("answer", catalog.MessageOf(result.Response)))...)
	}
}

// failedAttrs returns callAttrs with what locates the failure.
func failedAttrs(c extension.Call, took time.Duration) []slog.Attr {
	namespace, cluster := c.Cluster()
	name := ""
	if c.Handler.Registration.InProcess == nil {
		name = c.Handler.Registration.Name
	}
	return append(callAttrs(c, took), places(namespace, cluster, "", name)...)
}

func callAttrs(c extension.Call, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("hook", c.Hook.Hook), slog.String("handler", c.Handler.Name), slog.Duration("took", took),
	}
	return withID(c, attrs)
}

// withID adds the id of the caller's call, if there is one.
func withID(c extension.Call, attrs []slog.Attr) []slog.Attr {
	if c.ID == "" {
		return attrs
	}
	return append(attrs, slog.String("call_id", c.ID))
}

// Cached counts a call that may be answered from the cache. A nil Observer counts nothing.
func (o *Observer) Cached(c extension.Call, result string) {
	if o != nil {
		o.metrics.cacheAnswers.WithLabelValues(c.Hook.Hook, c.Handler.Name, result).Inc()
	}
}

// DeprecatedCall counts a call that uses a deprecated version of a hook. handler is empty if the caller uses it. A nil
// Observer counts nothing.
func (o *Observer) DeprecatedCall(h *catalog.Hook, handler string) {
	if o == nil {
		return
	}
	side := "handler"
	if handler == "" {
		side = "caller"
	}
	o.metrics.deprecatedCalls.WithLabelValues(h.Group, h.Version, h.Hook, handler, side).Inc()
}
