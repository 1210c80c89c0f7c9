// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// receipts bounds the time until the message of a gRPC stream has arrived, and counts the streams that are calls. gRPC
// itself bounds neither: a stream whose message stalls would keep its memory for as long as its connection lives.
//
// The tap sees each stream before its message, and gives it a context that ends when the time is over. The interceptors
// run once the message is there and stop the clock.
type receipts struct {
	timeout time.Duration
	calls   *inFlight
	logger  *slog.Logger
}

// options returns the options of the server. The interceptors come before those of options that follow.
func (r receipts) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(r.tap), grpc.ChainUnaryInterceptor(r.unary), grpc.ChainStreamInterceptor(r.stream),
	}
}

// receipt is the context of a stream whose message is being received.
type receipt struct {
	context.Context
	late atomic.Bool
	// answered is set when a handler has returned before the caller has reset the stream.
	answered atomic.Bool
	clock    *time.Timer
	cancel   context.CancelFunc
}

type receiptKey struct{}

// Err returns DeadlineExceeded if the message did not come in time.
func (r *receipt) Err() error {
	if r.late.Load() {
		return context.DeadlineExceeded
	}
	return r.Context.Err()
}

// Value returns r itself for the key of receipts, and otherwise the value of the context.
func (r *receipt) Value(key any) any {
	if key == (receiptKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// giveUp ends the stream with ctx as one whose message did not come in time.
func giveUp(ctx context.Context) {
	if r, ok := ctx.Value(receiptKey{}).(*receipt); ok {
		r.late.Store(true)
		r.cancel()
	}
}

// returned records that the handler of the stream with ctx has returned, unless the caller has reset it.
func returned(ctx context.Context) {
	if r, ok := ctx.Value(receiptKey{}).(*receipt); ok && r.Context.Err() == nil {
		r.answered.Store(true)
	}
}

// arrived stops the clock of the stream with ctx.
func arrived(ctx context.Context) {
	if r, ok := ctx.Value(receiptKey{}).(*receipt); ok {
		r.clock.Stop()
	}
}

// tap implements tap.ServerInHandle. The context of each stream ends when the stream does.
func (r receipts) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	call := isCall(info.FullMethodName)
	if call {
		r.calls.begin()
	}
	connection := streamConnection(ctx)
	if connection != nil {
		connection.overhead.Begin(2)
	}
	bounded, cancel := context.WithCancel(ctx)
	stream := &receipt{Context: bounded, cancel: cancel}
	stream.clock = time.AfterFunc(r.timeout, func() {
		stream.late.Store(true)
		cancel()
		r.logger.Warn("request was not received in time", "protocol", "gRPC", "method", info.FullMethodName,
			"timeout", r.timeout)
	})
	context.AfterFunc(ctx, func() {
		stream.clock.Stop()
		if !stream.answered.Load() && !stream.late.Load() {
			endStream(ctx)
		}
		if connection != nil {
			connection.overhead.End()
		}
		if call {
			r.calls.end()
		}
	})
	return stream, nil
}

// isCall reports whether a method is none of the server's own: health checks and reflection are no calls.
func isCall(method string) bool { return !strings.HasPrefix(method, "/grpc.") }

func (r receipts) unary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	arrived(ctx)
	defer returned(ctx)
	return handle(ctx, req)
}

// stream stops the clock of streams on which only the server streams with their first message. Others, which only
// reflection has, must end in time as a whole.
func (r receipts) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if !info.IsClientStream || isCall(info.FullMethod) {
		s = &receivedStream{s}
	}
	defer returned(s.Context())
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
