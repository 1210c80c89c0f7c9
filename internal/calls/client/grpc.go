// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// invoke sends a request and reads the answer of the hook.
func (c *Client) invoke(ctx context.Context, h *catalog.Hook, req proto.Message) *Response {
	m := h.Response.New().Interface()
	r := c.exchange(ctx, h, req, m)
	if !r.OK() {
		return r
	}
	if r.Message, r.Invalid = m, c.config.Codec.Check(m); r.Invalid == nil {
		r.Body, r.Invalid = c.config.Codec.Append(nil, m)
	}
	return r
}

// exchange makes the call of a hook.
func (c *Client) exchange(ctx context.Context, h *catalog.Hook, in, out any, options ...grpc.CallOption) *Response {
	if c.config.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.config.Token)
	}
	var header, trailer metadata.MD
	rpc := &connect.RPC{}
	invoke := func() error {
		return c.grpc.Invoke(rpc.Watch(ctx), h.Method, in, out,
			append(options, grpc.Header(&header), grpc.Trailer(&trailer))...)
	}
	err := invoke()
	for c.config.Wait && err != nil && ctx.Err() == nil && rpc.Unsent() {
		f := c.grpc.Classify(rpc, err)
		if f == nil || f.Kind != hook.Unreachable || !f.Temporary {
			break
		}
		if !c.grpc.WaitForStateChange(ctx, connectivity.TransientFailure) && ctx.Err() != context.Canceled {
			return &Response{Failure: f}
		}
		rpc = &connect.RPC{}
		err = invoke()
	}
	r := &Response{GRPC: status.Convert(err), Header: http.Header{}}
	r.Status = "gRPC " + r.GRPC.Code().String()
	for k, v := range metadata.Join(header, trailer) {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	if err == nil {
		return r
	}
	if r.Failure = c.grpc.Classify(rpc, err); r.Failure != nil {
		r.Failure = c.failure(ctx, r.Failure)
	}
	return r
}

// rawCodec is a codec of messages that are bytes already.
type rawCodec struct{}

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(v any) ([]byte, error) {
	if b, ok := v.(*[]byte); ok {
		return *b, nil
	}
	return nil, fmt.Errorf("%T is not bytes", v)
}

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is not bytes", v)
	}
	*b = data
	return nil
}

// Name implements encoding.Codec: to the server they are protobuf.
func (rawCodec) Name() string { return "proto" }
