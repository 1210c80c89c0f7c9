// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// Observer sees every call twice, as it comes from a caller and as it goes to each handler, and tells what it saw: metrics,
// trace spans, and one log line for each call that failed. It is safe for concurrent use.
type Observer struct {
	metrics    *Metrics
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
	losses     *convert.Losses
}

// NewObserver returns an Observer. The provider decides whether spans are exported; trace context of callers is handed on
// to extensions either way. What conversions lose is recorded in losses.
func NewObserver(m *Metrics, p trace.TracerProvider, l *slog.Logger, losses *convert.Losses) *Observer {
	return &Observer{metrics: m, tracer: p.Tracer("github.com/hookgate/hookgate/gateway"), propagator: Propagator(), logger: l, losses: losses}
}

// Propagator returns what carries the trace context, and the call id, from a call to the calls that it causes.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, callIDPropagator{})
}

// callIDPropagator hands the call id on. It extracts nothing: begin reads it.
type callIDPropagator struct{}

func (callIDPropagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if in := inboundFrom(ctx); in != nil {
		carrier.Set(CallIDHeader, in.id)
	}
}

func (callIDPropagator) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	return ctx
}

func (callIDPropagator) Fields() []string { return []string{CallIDHeader} }

// inbound is one call from a caller, from the first byte to the last. It belongs to the goroutine of the front.
type inbound struct {
	o        *Observer
	ctx      context.Context
	span     trace.Span
	id       string
	protocol string
	hook     string // "unknown" if there is no such hook, so that callers cannot make up metric labels
	asked    string // the hook's name, or what the caller took for one
	start    time.Time
	received int64
	sent     int64
	err      *hook.Error
	body     *buffered // of a REST request
	warnings warnings
}

type inboundKey struct{}

// inboundFrom returns the call that ctx belongs to, or nil outside of one.
func inboundFrom(ctx context.Context) *inbound {
	in, _ := ctx.Value(inboundKey{}).(*inbound)
	return in
}

// begin starts to observe a call. h is nil if there is no hook of that name; callID is what the caller proposes.
func (o *Observer) begin(ctx context.Context, protocol, asked string, h *catalog.Hook, carrier propagation.TextMapCarrier, callID string) (context.Context, *inbound) {
	in := &inbound{o: o, id: callIDOr(callID), protocol: protocol, hook: "unknown", asked: asked, start: time.Now()}
	if h != nil {
		in.hook, in.asked = h.Hook, h.Hook
	}
	ctx = context.WithValue(o.propagator.Extract(ctx, carrier), inboundKey{}, in)
	ctx, in.span = o.tracer.Start(ctx, "hookgate "+in.hook, trace.WithSpanKind(trace.SpanKindServer))
	in.ctx = ctx
	if in.span.IsRecording() {
		in.span.SetAttributes(attribute.String("hookgate.call_id", in.id), attribute.String("hookgate.hook", in.hook), attribute.String("rpc.system", protocol))
	}
	o.metrics.requestsInFlight.WithLabelValues(protocol).Inc()
	return ctx, in
}

// fail notes the error that the caller gets.
func (in *inbound) fail(err error) { in.err = asError(err) }

// end tells what became of the call.
func (in *inbound) end() {
	took := time.Since(in.start)
	kind := ""
	if in.err != nil {
		kind = in.err.Kind.String()
		in.span.SetStatus(otelcodes.Error, in.err.Error())
		attrs := []slog.Attr{
			slog.String("call_id", in.id), slog.String("protocol", in.protocol), slog.String("hook", in.asked), slog.String("kind", kind),
			slog.String("error", in.err.Error()), slog.Duration("took", took),
		}
		if cause := errors.Unwrap(in.err); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
		in.o.logger.LogAttrs(in.ctx, slog.LevelError, "call failed", attrs...)
	}
	in.span.End()
	m := in.o.metrics
	m.requestsInFlight.WithLabelValues(in.protocol).Dec()
	m.requests.WithLabelValues(in.protocol, in.hook, kind).Inc()
	m.requestDuration.WithLabelValues(in.protocol, in.hook).Observe(took.Seconds())
	m.requestReceivedBytes.WithLabelValues(in.protocol, in.hook).Add(float64(in.received))
	m.requestSentBytes.WithLabelValues(in.protocol, in.hook).Add(float64(in.sent))
}

// The outcomes of a call to a handler.
const (
	outcomeSuccess = "success" // status Success
	outcomeFailure = "failure" // status Failure, the extension's own
	outcomeError   = "error"   // no answer that could be used; the kind tells why
	outcomeIgnored = "ignored" // such an error, hidden by the failure policy Ignore
)

// Handlers returns a Caller that observes the calls that go through it to next, the outermost one.
func (o *Observer) Handlers(next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		name, h := c.Handler.Name, c.Hook.Hook
		m := o.metrics
		ctx, span := o.tracer.Start(ctx, "handler "+name, trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
		inFlight := m.handlerInFlight.WithLabelValues(h, name)
		inFlight.Inc()
		defer inFlight.Dec()
		start := time.Now()
		response, err := next.Call(ctx, c)
		took := time.Since(start)

		outcome, kind := outcomeSuccess, ""
		switch {
		case err != nil:
			outcome, kind = outcomeError, hook.KindOf(err).String()
			span.SetStatus(otelcodes.Error, err.Error())
		case c.Ignored != nil:
			outcome, kind = outcomeIgnored, hook.KindOf(c.Ignored).String()
			m.ignoredFailures.WithLabelValues(h, name, kind).Inc()
			span.AddEvent("failure ignored", trace.WithAttributes(attribute.String("error", c.Ignored.Error())))
			o.logIgnored(ctx, c, kind, took)
		default:
			if answer, refused := failed(response); refused {
				outcome = outcomeFailure
				o.logFailure(ctx, c, answer.GetMessage(), took)
			}
		}
		if len(c.Lost) > 0 {
			m.lostMembers.WithLabelValues(h, name).Add(float64(len(c.Lost)))
			o.logLost(ctx, c)
		}
		m.handlerCalls.WithLabelValues(h, name, outcome, kind).Inc()
		m.handlerDuration.WithLabelValues(h, name).Observe(took.Seconds())
		m.handlerSentBytes.WithLabelValues(h, name).Add(float64(c.Sent))
		m.handlerReceivedBytes.WithLabelValues(h, name).Add(float64(c.Received))
		return response, err
	})
}

func (o *Observer) logIgnored(ctx context.Context, c *extension.Call, kind string, took time.Duration) {
	attrs := append(callAttrs(ctx, c, took), slog.String("kind", kind), slog.String("error", c.Ignored.Error()))
	if cause := errors.Unwrap(c.Ignored); cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	o.logger.LogAttrs(ctx, slog.LevelWarn, "failure ignored", attrs...)
}

// logLost logs what a conversion could not express, once for each handler and path.
func (o *Observer) logLost(ctx context.Context, c *extension.Call) {
	for _, path := range o.losses.Record(c.Handler.Registration.Name, c.Handler.Handler.Name, c.Lost) {
		attrs := []slog.Attr{
			slog.String("hook", c.Hook.Hook), slog.String("handler", c.Handler.Name), slog.String("path", path),
			slog.String("implements", c.Handler.Handler.Hook.APIVersion()), slog.String("understands", c.Handler.Handler.ClusterAPIVersion),
		}
		if in := inboundFrom(ctx); in != nil {
			attrs = append(attrs, slog.String("call_id", in.id))
		}
		o.logger.LogAttrs(ctx, slog.LevelWarn, "conversion loses a member, which is logged once", attrs...)
	}
}

func (o *Observer) logFailure(ctx context.Context, c *extension.Call, message string, took time.Duration) {
	o.logger.LogAttrs(ctx, slog.LevelError, "handler answered Failure", append(callAttrs(ctx, c, took), slog.String("message", message))...)
}

func callAttrs(ctx context.Context, c *extension.Call, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("hook", c.Hook.Hook), slog.String("handler", c.Handler.Name), slog.Duration("took", took)}
	if in := inboundFrom(ctx); in != nil {
		attrs = append(attrs, slog.String("call_id", in.id))
	}
	return attrs
}

// callIDOr returns the id that the caller proposes if it can stand in a log, or a new one.
func callIDOr(proposed string) string {
	if proposed == "" || len(proposed) > 64 {
		return rand.Text()
	}
	for _, c := range []byte(proposed) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return rand.Text()
		}
	}
	return proposed
}
