// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/propagation"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// call is one call from a caller, from its first byte to its last. The generated code between a front and the services
// passes a context and a message only, so that it travels in the context: through the front, the dispatcher and the
// chain. It belongs to the goroutine of the front, except for its warnings; the others only read what is set when they
// begin, and take of its memory.
type call struct {
	observe.Call

	ctx       context.Context
	via       via.Way
	admission auth.Admission

	// The memory and the processors that the call has.
	memory *budget.Reservation // nil if the gateway has no budget
	work   budget.Work

	// A request in JSON. Its body is decoded when it is known who reads the message, and stream is nil before it is read.
	isJSON bool
	stream *servers.SentBody
	body   []byte
	guard  codec.Guard // of decoding body

	warnings  hookversion.Warnings
	unhandled bool // no handler is for the request
}

// begin begins a call. h is nil if no hook has the name asked; callID is the id that the caller proposes.
func begin(
	ctx context.Context, o *observe.Observer, protocol, asked string, h *catalog.Hook,
	carrier propagation.TextMapCarrier, callID string,
) (context.Context, *call) {
	in := &call{Call: observe.Call{ID: callIDOr(callID), Protocol: protocol, Hook: h, Asked: asked}}
	in.ctx = o.Begin(bounds.With(ctx, in), &in.Call, carrier)
	return in.ctx, in
}

// fail sets the error that the caller gets.
func (in *call) fail(err error) { in.Fail(outcome.ErrorOf(err)) }

// end ends the call.
func (in *call) end() {
	in.memory.Release()
	in.admission.Release()
	in.End()
}

// Memory implements bounds.Call.
func (in *call) Memory() *budget.Reservation { return in.memory }

// Work implements bounds.Call.
func (in *call) Work() *budget.Work { return &in.work }

// Large implements bounds.Call.
func (in *call) Large() bool { return in.Received > budget.Step }

// callFrom returns the call that ctx belongs to, or nil outside of one.
func callFrom(ctx context.Context) *call {
	in, _ := bounds.From(ctx).(*call)
	return in
}

// CallIDHeader carries the id of a call: in every answer, and in the log line of a call that failed. A caller may
// choose it.
const CallIDHeader = "Hookgate-Call-Id"

// HandlersHeader is in the answer to a call that no handler is for, and 0: the gateway has answered it alone. Over
// gRPC, it is metadata.
const HandlersHeader = "Hookgate-Handlers"

// maxCallID is the longest id that a caller may choose.
const maxCallID = 64

// callIDOr returns the id that the caller proposes if it is safe to log, and a new one otherwise.
func callIDOr(proposed string) string {
	if proposed == "" || len(proposed) > maxCallID {
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

// callID returns the id of the call that ctx belongs to, or nothing outside of one.
func callID(ctx context.Context) string {
	if in := callFrom(ctx); in != nil {
		return in.ID
	}
	return ""
}

// Propagator returns the propagator of the trace context and the call id, from a call to the calls that it causes.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, callIDPropagator{})
}

// callIDPropagator injects the call id. It extracts nothing, because the front reads the id.
type callIDPropagator struct{}

func (callIDPropagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if id := callID(ctx); id != "" {
		carrier.Set(CallIDHeader, id)
	}
}

func (callIDPropagator) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	return ctx
}

func (callIDPropagator) Fields() []string { return []string{CallIDHeader} }

// WarningHeader carries the warnings of a call in its answer: over REST one header each, over gRPC a trailer.
const WarningHeader = "Warning"

// warnOfCaller warns, and counts, that the call itself uses a deprecated version of the hook.
func warnOfCaller(ctx context.Context, o *observe.Observer, h *catalog.Hook) {
	if in := callFrom(ctx); in != nil && in.warnings.AddCaller(h) {
		o.DeprecatedCall(h, "")
	}
}

// warnDeprecated returns the link that warns, and counts, that the handler which is called implements a deprecated
// version of the hook.
func warnDeprecated(o *observe.Observer) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			in := callFrom(ctx)
			if in == nil || c.Hook.Singleton() || c.PolicyError != nil || c.Comparison {
				return next(ctx, c)
			}
			h, ok := c.Hook.In(c.Handler.Handler.Hook.Version)
			if ok && in.warnings.AddHandler(h, c.Handler.Name) {
				o.DeprecatedCall(h, c.Handler.Name)
			}
			return next(ctx, c)
		}
	}
}

const (
	// callBytes is what a call takes besides large bodies, in bytes: its first buffers, its message and its goroutines.
	callBytes = budget.CallBytes
	// reserveFrom is the number of bytes up to which callBytes is enough.
	reserveFrom = callBytes
)

// reserve reserves the first memory of a call, in the account of its caller, who is known by its identity or, without
// one, by its host.
func (in *call) reserve(ctx context.Context, b *budget.Budget, host string) (err error) {
	name := in.admission.Caller.Name
	if name == "" {
		name = host
	}
	in.memory, err = b.Reserve(ctx, budget.Caller(name), callBytes)
	return err
}

// chargeExtension makes an extension answerable for the memory of each call to it, as long as the call lasts. An
// extension that has its share has no more calls until others have ended: the call fails as Overloaded, which no
// failure policy hides. The memory of the answer belongs to the caller afterwards.
func chargeExtension(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		in := callFrom(ctx)
		if in == nil || in.memory == nil {
			return next(ctx, c)
		}
		charge, err := in.memory.Charge(budget.Extension(c.Handler.Registration.Name))
		if err != nil {
			return extension.Result{}, err
		}
		answered := false
		defer func() { charge.End(answered) }() // of a call that panics, too
		c.Memory = charge
		result, err := next(ctx, c)
		answered = err == nil
		return result, err
	}
}
