// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/auth"
	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/edge"
	"github.com/hookgate/hookgate/internal/via"
)

// call is one call from a caller, from its first byte to its last. The generated code between a front and the services
// passes a context and a message only, so that it travels in the context: through the front, the dispatcher and the
// chain. It belongs to the goroutine of the front, except for its warnings; the others only read what is set when they
// begin, and take of its memory.
type call struct {
	id       string
	protocol string
	hook     *catalog.Hook // nil if there is no such hook
	asked    string        // the hook's name, or the one that the caller used
	via      via.Way
	start    time.Time

	// The caller.
	host      string
	admission auth.Admission

	// The memory and the processors that the call has.
	memory *budget.Reservation // nil if the gateway has no budget
	work   budget.Work

	// A request in JSON. Its body is decoded when it is known who reads the message, and stream is nil before it is read.
	isJSON bool
	stream *edge.SentBody
	body   []byte
	guard  codec.Guard // of decoding body

	// What is observed.
	o        *Observer
	ctx      context.Context
	span     trace.Span
	label    string // of metrics: "unknown" if there is no such hook, so that callers cannot make up labels
	received int64
	sent     int64
	err      *hook.Error
	warnings hookversion.Warnings
}

type callKey struct{}

func withCall(ctx context.Context, in *call) context.Context {
	return context.WithValue(ctx, callKey{}, in)
}

// callFrom returns the call that ctx belongs to, or nil outside of one.
func callFrom(ctx context.Context) *call {
	in, _ := ctx.Value(callKey{}).(*call)
	return in
}
