// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/via"
)

// Request is a request of a hook, decoded.
type Request struct {
	Hook *catalog.Hook
	// Handler is the registered name or the label of a handler. Empty, or the name of a hook whose answers can be
	// merged, means every handler that matches. If the gateway answers for a single extension, it is that extension's
	// own name of the handler.
	Handler string
	// Message is of type Hook.Request. It is only read.
	Message proto.Message
	// Body is the JSON of Message as the caller sent it. It is nil for gRPC, and if the body lacks kind and apiVersion,
	// so that it cannot be sent on unchanged.
	Body []byte
	// Via is the way of the request through other gateways.
	Via via.Way
}

// isAggregate reports whether the request names the handler that represents all handlers of the hook in Discovery.
func (r *Request) isAggregate() bool {
	return r.Hook.Mergeable && strings.EqualFold(r.Handler, r.Hook.Hook)
}

// incoming holds the data of a request besides its message. The generated code between a front and the services passes
// a context and a message only, so the front puts it into the context.
type incoming struct {
	hook *catalog.Hook
	via  via.Way
	// body is the body of a REST request. complete reports whether it states its kind and apiVersion; it is set when
	// the body is decoded.
	body     []byte
	complete bool
	guard    codec.Guard // of decoding body
	work     *budget.Work
	// refused is the error of a body that is beyond a limit. The mux would pass on only its text.
	refused *hook.Error
}

type incomingKey struct{}

func withIncoming(ctx context.Context, in *incoming) context.Context {
	return context.WithValue(ctx, incomingKey{}, in)
}

// incomingFrom returns the incoming that a front put into ctx, or nil.
func incomingFrom(ctx context.Context) *incoming {
	in, _ := ctx.Value(incomingKey{}).(*incoming)
	return in
}

// request returns the request of which m is the message.
func (in *incoming) request(m proto.Message) Request {
	r := Request{Hook: in.hook, Message: m, Via: in.via}
	if named, ok := m.(interface{ GetHandler() string }); ok {
		r.Handler = named.GetHandler()
	}
	if in.complete {
		r.Body = in.body
	}
	return r
}
