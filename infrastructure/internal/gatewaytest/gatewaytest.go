// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatewaytest is a gateway in the process of a test, which returns the errors that a caller.Client returns.
package gatewaytest

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Answer is what comes of a call: an answer of its hook, or one of the other fields.
type Answer struct {
	Message  proto.Message
	GRPC     *status.Status // of a server that is no gateway
	NoAnswer *hook.Error
	Invalid  error
}

// Gateway answers calls by a function.
type Gateway func(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *Answer

var _ grpc.ClientConnInterface = Gateway(nil)

// Invoke implements grpc.ClientConnInterface.
func (g Gateway) Invoke(ctx context.Context, method string, in, out any, _ ...grpc.CallOption) error {
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		return err
	}
	h, ok := hooks.ByMethod(method)
	req, isMessage := in.(proto.Message)
	if !ok || !isMessage {
		return errors.New("no hook: " + method)
	}
	handler := ""
	if named, ok := in.(interface{ GetHandler() string }); ok {
		handler = named.GetHandler()
	}
	a := g(ctx, h, handler, req)
	switch {
	case a.NoAnswer != nil:
		return hook.Errorf(a.NoAnswer.Kind, "no answer").WithCause(&caller.NoAnswer{Err: a.NoAnswer})
	case a.GRPC.Err() != nil:
		return hook.Errorf(hook.BadResponse, "no gateway").WithCause(a.GRPC.Err())
	case a.Invalid != nil:
		return hook.Errorf(hook.BadResponse, "invalid").
			WithCause(&caller.InvalidAnswer{Text: "the answer is invalid", Err: a.Invalid})
	}
	proto.Merge(out.(proto.Message), a.Message)
	switch s, _ := catalog.StatusOf(a.Message); s {
	case catalog.Success:
		return nil
	case catalog.Failure:
		return &caller.Failure{Hook: h.Hook, Message: catalog.MessageOf(a.Message)}
	}
	return hook.Errorf(hook.BadResponse, "no status").WithCause(&caller.InvalidAnswer{Text: "the answer has no status"})
}

// NewStream implements grpc.ClientConnInterface. No hook is a stream.
func (Gateway) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("hooks are not streams")
}
