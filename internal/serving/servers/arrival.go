// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// arrivals bounds the time until the message of a gRPC stream has arrived, and counts the streams that are calls. gRPC
// itself bounds neither: a stream whose message stalls would keep its memory for as long as its connection lives. The
// suite of faults has "60 gRPC streams stall".
//
// The tap sees each stream before its message, and gives it a context that ends when the time is over. The interceptors
// run once the message is there and stop the clock.
type arrivals struct {
	timeout time.Duration
	calls   *inFlight
	logger  *slog.Logger
}

// options returns the options of the server. The interceptors come before those of options that follow.
func (a arrivals) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(a.tap), grpc.ChainUnaryInterceptor(a.unary), grpc.ChainStreamInterceptor(a.stream),
	}
}

// arrival is the context of a stream whose message is being received.
type arrival struct {
	context.Context
	late atomic.Bool
	// answered is set when a handler has returned before the caller has reset the stream.
	answered atomic.Bool
	clock    *time.Timer
	cancel   context.CancelFunc
}

type arrivalKey struct{}

// Err returns DeadlineExceeded if the message did not come in time.
func (a *arrival) Err() error {
	if a.late.Load() {
		return context.DeadlineExceeded
	}
	return a.Context.Err()
}

// Value returns a itself for the key of arrivals, and otherwise the value of the context.
func (a *arrival) Value(key any) any {
	if key == (arrivalKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// giveUp ends the stream with ctx as one whose message did not come in time.
func giveUp(ctx context.Context) {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		a.late.Store(true)
		a.cancel()
	}
}

// Returned records that the handler of the stream with ctx has returned, unless the caller has reset it.
func Returned(ctx context.Context) {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok && a.Context.Err() == nil {
		a.answered.Store(true)
	}
}

// arrived stops the clock of the stream with ctx.
func arrived(ctx context.Context) {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		a.clock.Stop()
	}
}

// tap implements tap.ServerInHandle. The context of each stream ends when the stream does.
func (a arrivals) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	call := isCall(info.FullMethodName)
	if call {
		a.calls.begin()
	}
	c := streamConn(ctx)
	if c != nil {
		c.overhead.Begin(2)
	}
	bounded, cancel := context.WithCancel(ctx)
	stream := &arrival{Context: bounded, cancel: cancel}
	stream.clock = time.AfterFunc(a.timeout, func() {
		stream.late.Store(true)
		cancel()
		a.logger.Warn("request was not received in time", "protocol", "gRPC", "method", info.FullMethodName,
			"timeout", a.timeout)
	})
	context.AfterFunc(ctx, func() {
		stream.clock.Stop()
		if c != nil {
			if !stream.answered.Load() && !stream.late.Load() {
				c.wasReset()
			}
			c.overhead.End()
		}
		if call {
			a.calls.end()
		}
	})
	return stream, nil
}

// isCall reports whether a method is none of the server's own: health checks and reflection are no calls.
func isCall(method string) bool { return !strings.HasPrefix(method, "/grpc.") }

func (a arrivals) unary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	arrived(ctx)
	defer Returned(ctx)
	return handle(ctx, req)
}

// stream stops the clock of streams on which only the server streams with their first message. Others, which only
// reflection has, must end in time as a whole.
func (a arrivals) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if !info.IsClientStream || isCall(info.FullMethod) {
		s = &receivedStream{s}
	}
	defer Returned(s.Context())
	return handle(srv, s)
}

// receivedStream stops the clock of its stream when a message has arrived.
type receivedStream struct{ grpc.ServerStream }

// RecvMsg receives a message.
func (s *receivedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		arrived(s.Context())
	}
	return err
}
