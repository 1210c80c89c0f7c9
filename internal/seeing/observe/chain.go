// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	otelcodes "go.opentelemetry.io/otel/codes"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// BeginChain starts to observe a call to a chain of handlers, which counts as a handler of its name besides its steps.
// The context has the span of the chain, in which those of the steps are. End must be called once. A nil Observer
// observes nothing.
func (o *Observer) BeginChain(
	ctx context.Context, h *catalog.Hook, name string,
) (_ context.Context, end func(response proto.Message, err error)) {
	if o == nil {
		return ctx, func(proto.Message, error) {}
	}
	m := o.metrics
	ctx, span := o.tracer.Start(ctx, "chain "+name)
	series := m.series.begin(name)
	inFlight := m.handlerInFlight.WithLabelValues(h.Hook, name)
	inFlight.Inc()
	start := time.Now()
	return ctx, func(response proto.Message, err error) {
		took := time.Since(start)
		outcome, kind := outcomeSuccess, ""
		call := activity.Call{Ended: start.Add(took), Took: took, Timeout: limits.Timeout}
		if err != nil {
			outcome, kind = outcomeError, hook.KindOf(err).String()
			call.Outcome, call.Message = activity.Failed, err.Error()
			span.SetStatus(otelcodes.Error, err.Error())
		} else if message, refused := catalog.FailureOf(response); refused {
			outcome = outcomeFailure
			call.Outcome, call.Message = activity.Refused, message
		}
		m.handlerCalls.WithLabelValues(h.Hook, name, outcome, kind).Inc()
		m.handlerDuration.WithLabelValues(h.Hook, name).Observe(took.Seconds())
		if hook.KindOf(err) != hook.Canceled { // which says nothing about the chain
			o.handlers.Record(name, call)
		}
		inFlight.Dec()
		m.series.end(series)
		span.End()
	}
}

// Block keeps that the Cluster of a request waits, because a chain blocks an update in place.
func (o *Observer) Block(h *catalog.Hook, chain string, request proto.Message, message string) {
	if o == nil {
		return
	}
	if wait := waitFor(h, chain, request); wait.Cluster != "" {
		o.holds.Hold(activity.Hold{Wait: wait, Kind: activity.KindFailure, Message: message, Last: time.Now()})
	}
}

// Unblock forgets what Block has kept of a Cluster.
func (o *Observer) Unblock(h *catalog.Hook, chain string, request proto.Message) {
	if o == nil {
		return
	}
	if wait := waitFor(h, chain, request); wait.Cluster != "" {
		o.holds.Release(wait, time.Now())
	}
}

func waitFor(h *catalog.Hook, handler string, request proto.Message) activity.Wait {
	namespace, name := subject.Cluster(request)
	wait := activity.Wait{Namespace: namespace, Cluster: name, Hook: h.Hook, Handler: handler}
	if _, kind, _, owner := subject.Owner(request); owner != "" {
		wait.Object = fmt.Sprintf("%s %q", kind, text.Cut(owner, limits.QuotedBytes))
	}
	return wait
}
