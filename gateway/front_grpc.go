// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/network/wire"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// GRPCOptions returns the options of the gRPC server that the front is registered with: the contract's message size
// instead of gRPC's 4 MiB, and a codec that bounds the elements of messages and inflates them in the memory of their
// calls.
func GRPCOptions() []grpc.ServerOption {
	return append(wire.ServerOptions(), grpc.MaxRecvMsgSize(BodyBytes), grpc.MaxSendMsgSize(BodyBytes))
}

// RegisterGRPC registers the services, which d answers, with a gRPC server, as the gateway's front: it admits callers
// before it receives their messages, checks the raw objects of requests, maps errors to codes and recovers panics. d
// needs an Observer, and the server the GRPCOptions.
func RegisterGRPC(server grpc.ServiceRegistrar, d *Dispatcher, services *Services) {
	services.RegisterGRPC(&grpcFront{server: server, config: d.config})
}

// grpcFront registers services whose methods it wraps. An interceptor would see a call only after its message.
type grpcFront struct {
	server grpc.ServiceRegistrar
	config Config
}

// RegisterService registers a service with its methods wrapped.
func (f *grpcFront) RegisterService(desc *grpc.ServiceDesc, impl any) {
	wrapped := *desc
	wrapped.Methods = slices.Clone(desc.Methods)
	for i := range wrapped.Methods {
		m := &wrapped.Methods[i]
		if h, ok := f.config.Catalog.ByMethod("/" + desc.ServiceName + "/" + m.MethodName); ok {
			m.Handler = f.wrap(h, m.Handler)
		}
	}
	f.server.RegisterService(&wrapped, impl)
}

// wrap returns the handler of a method that answers calls of a hook by next, which receives the message.
func (f *grpcFront) wrap(h *catalog.Hook, next grpc.MethodHandler) grpc.MethodHandler {
	return func(
		service any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor,
	) (resp any, err error) {
		md, _ := metadata.FromIncomingContext(ctx)
		ctx, in := begin(ctx, f.config.Observer, "gRPC", h.Hook, h, metadataCarrier(md), first(md.Get(CallIDHeader)))
		defer func() {
			if p := recover(); p != nil {
				err = outcome.Recovered(p)
			}
			if err != nil {
				in.fail(err)
				resp, err = nil, grpcError(in.Err)
			}
			if values := in.warnings.Values(); values != nil {
				// This fails only outside of a call.
				_ = grpc.SetTrailer(ctx, metadata.MD{strings.ToLower(WarningHeader): values})
			}
			servers.Returned(ctx) // refused calls do not get to the interceptors
			in.end()
		}()
		if err := grpc.SetHeader(ctx, metadata.Pairs(CallIDHeader, in.ID)); err != nil {
			return nil, outcome.Internal(err)
		}
		shown := grpcCredentials(ctx, md)
		if err := in.admit(f.config.Gate, shown, h); err != nil {
			return nil, err
		}
		if err := in.reserve(ctx, f.config.Memory, shown.Host); err != nil {
			return nil, err
		}
		in.via = via.Of(md.Get(via.Header))
		resp, err = next(service, ctx, func(m any) error { return f.receive(in, m, receive) }, interceptor)
		if err == nil && in.unhandled {
			err = grpc.SetHeader(ctx, metadata.Pairs(HandlersHeader, "0"))
		}
		if err == nil {
			resp, err = f.send(in, resp)
		}
		return resp, err
	}
}

// send reserves what gRPC needs to write an answer, unless it is larger than one may be. The answer has that memory
// until its caller has read it.
func (f *grpcFront) send(in *call, resp any) (any, error) {
	answer, ok := resp.(proto.Message)
	if !ok {
		return nil, outcome.Internal(nil)
	}
	sized := wire.SizeOf(answer)
	in.Sent = int64(sized.Size)
	if in.Sent > BodyBytes {
		return nil, answerTooLarge()
	}
	if in.Sent > reserveFrom {
		if err := in.memory.Grow(in.ctx, in.Sent); err != nil {
			return nil, err
		}
	}
	if err := sendUncompressed(in.ctx); err != nil {
		return nil, outcome.Internal(err)
	}
	memory := in.memory
	in.memory = nil // which would be released with the call
	memory.ShrinkTo(max(callBytes, in.Sent))
	return wire.Held{Sized: sized, Written: servers.HoldAnswer(in.ctx, in.Sent, memory.Release)}, nil
}

// sendUncompressed makes the answer to a compressed request none: gRPC would compress it outside of the memory of its
// call, and keep the copy until its caller has read it.
func sendUncompressed(ctx context.Context) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok || stream.RecvCompress() == "" {
		return nil
	}
	return grpc.SetSendCompressor(ctx, encoding.Identity)
}

// receive receives the message of a call and checks it.
func (f *grpcFront) receive(in *call, into any, receive func(any) error) error {
	m, ok := into.(proto.Message)
	if !ok {
		return outcome.Internal(nil)
	}
	in.work = in.memory.Work(in.ctx)
	message := &wire.Message{Message: m, Reserve: in.memory.Within(in.ctx), Work: &in.work}
	err := func() error {
		defer servers.WatchMessage(in.ctx, in.memory).End()
		return receive(message)
	}()
	if err != nil {
		return receiveError(in.ctx, err)
	}
	if refused := bounds.Refused(message.Err); refused != nil {
		return refused
	}
	if message.Err != nil {
		return receiveError(in.ctx, message.Err)
	}
	in.Received = int64(proto.Size(m))
	if err = f.check(in, m); err != nil {
		in.About(m)
	}
	if refused := bounds.Refused(err); refused != nil {
		return refused
	}
	if err != nil {
		return hook.Errorf(hook.InvalidRequest, "%s", err)
	}
	return nil
}

// check checks a message, a large one as heavy work.
func (f *grpcFront) check(in *call, m proto.Message) error {
	guard := codec.Guard{Reserve: in.memory.Within(in.ctx)}
	if in.Received > budget.Step {
		if err := in.work.Step(); err != nil {
			return err
		}
		defer in.work.End()
		guard.Step = in.work.Step
	}
	return f.config.Codec.CheckGuarded(m, guard)
}

// receiveError returns the error of a message that could not be received.
func receiveError(ctx context.Context, err error) error {
	code := status.Code(err)
	if errors.Is(err, body.ErrTooLarge) { // inflated
		code = codes.ResourceExhausted
	}
	switch code {
	case codes.ResourceExhausted:
		return hook.Errorf(hook.TooLarge, "request is larger than %d MiB", BodyBytes>>20).WithCause(err)
	case codes.Canceled:
		return hook.Errorf(hook.Canceled, "the caller left before its request was read").WithCause(err)
	case codes.DeadlineExceeded:
		return hook.Errorf(hook.Timeout, "the request did not arrive in time").WithCause(err)
	}
	if ctx.Err() != nil {
		return hook.Errorf(hook.Canceled, "the caller left before its request was read").WithCause(err)
	}
	return hook.Errorf(hook.InvalidRequest, "request is not a message that the gateway can read").WithCause(err)
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// metadataCarrier lets a propagator read gRPC metadata.
type metadataCarrier metadata.MD

// Get returns the first value of the key.
func (c metadataCarrier) Get(key string) string { return first(metadata.MD(c).Get(key)) }

// Set sets the value of the key.
func (c metadataCarrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys returns all keys.
func (c metadataCarrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}
