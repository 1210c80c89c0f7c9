// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/propagation"
)

// CallIDHeader carries the id of a call: in every answer, and in the log line of a call that failed. A caller may
// choose it.
const CallIDHeader = "Hookgate-Call-Id"

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

// Propagator returns the propagator of the trace context and the call id, from a call to the calls that it causes.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, callIDPropagator{})
}

// callIDPropagator injects the call id. It extracts nothing, because Observer.begin reads the id.
type callIDPropagator struct{}

func (callIDPropagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if in := callFrom(ctx); in != nil {
		carrier.Set(CallIDHeader, in.id)
	}
}

func (callIDPropagator) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	return ctx
}

func (callIDPropagator) Fields() []string { return []string{CallIDHeader} }
