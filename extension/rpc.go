// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
)

// rpc is how far one call of gRPC got. It may be written to after the call has ended.
type rpc struct {
	sent, received atomic.Int64
	header         atomic.Bool // an answer has begun
	trailer        atomic.Bool // an answer has come to its end: its status is the server's
	unimplemented  atomic.Bool // the server said so
}

type rpcKey struct{}

// watch returns the context to make the call with.
func (r *rpc) watch(ctx context.Context) context.Context { return context.WithValue(ctx, rpcKey{}, r) }

// rpcWatcher is the stats.Handler that writes to the rpc of each call.
type rpcWatcher struct{}

var _ stats.Handler = rpcWatcher{}

// TagRPC implements stats.Handler.
func (rpcWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (rpcWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	r, ok := ctx.Value(rpcKey{}).(*rpc)
	if !ok {
		return // a health check
	}
	switch e := event.(type) {
	case *stats.OutPayload:
		r.sent.Store(int64(e.Length))
	case *stats.InPayload:
		r.received.Store(int64(e.Length))
	case *stats.InHeader:
		r.header.Store(true)
	case *stats.InTrailer:
		r.trailer.Store(true)
	}
}

// TagConn implements stats.Handler.
func (rpcWatcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (rpcWatcher) HandleConn(context.Context, stats.ConnStats) {}

// refusedBy classifies a call that came to no answer. The texts are fixed: gRPC's and the extension's own go to the log.
func (x *errand) refusedBy(ctx context.Context, c *channel, r *rpc, err error) *hook.Error {
	st := status.Convert(err)
	if ctx.Err() != nil || st.Code() == codes.DeadlineExceeded { // the server knows the deadline, and may be the first to say so
		return x.ended(ctx, err)
	}
	switch text := st.Message(); {
	// gRPC has no types for these.
	case strings.Contains(text, "unexpected HTTP status code"), strings.Contains(text, "unexpected content-type"):
		return x.fail(hook.BadResponse, "the server does not speak gRPC: is it a REST extension?", err)
	case strings.HasPrefix(text, "grpc: received message"):
		return x.fail(hook.BadResponse, fmt.Sprintf("answer is larger than %d bytes", c.limit), err)
	case !r.trailer.Load() && strings.Contains(text, "failed to unmarshal"):
		return x.fail(hook.BadResponse, "answer is not a message of the contract", err)
	case r.trailer.Load():
		return x.answered(r, st, err)
	case r.header.Load():
		return x.fail(hook.BadResponse, "answer ended early", err)
	case st.Code() == codes.Unavailable:
		return x.fail(hook.Unreachable, c.unreachable(text), err)
	}
	return x.fail(hook.BadResponse, "call was broken off: "+st.Code().String(), err)
}

// answered classifies what the extension's server said in place of an answer.
func (x *errand) answered(r *rpc, st *status.Status, err error) *hook.Error {
	code := st.Code()
	kind, text := hook.BadResponse, "answered "+code.String()
	switch code {
	case codes.Unavailable:
		kind = hook.Unreachable
	case codes.Unimplemented:
		r.unimplemented.Store(true)
		text += ": it has no " + strings.TrimPrefix(x.hook.Method, "/")
	case codes.ResourceExhausted:
		text += ": a server takes 4 MiB only, unless it is told otherwise"
	case codes.Unauthenticated:
		text += ": it wants to know who calls"
	}
	return x.fail(kind, text, err)
}

// unreachable says why there is no connection. detail is what gRPC says.
func (c *channel) unreachable(detail string) string {
	failure := c.failure.of(detail)
	switch {
	case failure != nil && (isNoCommonProtocol(failure) || strings.Contains(failure.Error(), "missing selected ALPN property")), errors.Is(failure, errTalks):
		return "the server does not speak HTTP/2, as gRPC does: is it a REST extension?"
	case errors.Is(failure, errNoGreeting):
		return "the server does not speak gRPC without TLS"
	case failure != nil:
		text, _ := unreachable(failure)
		return text
	case strings.Contains(detail, "health check failed"):
		return "the extension says that it is not serving"
	}
	return "connection closed without an answer"
}
