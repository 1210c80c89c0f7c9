// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/via"
)

// GRPCOptions returns the options that make a gRPC server the gateway's front: the contract's message size instead of
// gRPC's 4 MiB, and an interceptor that checks the raw objects of requests, maps errors to codes and recovers panics.
func GRPCOptions(k Contract, c *codec.Codec, o *Observer) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxBodyBytes),
		grpc.MaxSendMsgSize(MaxBodyBytes),
		grpc.ChainUnaryInterceptor(hookInterceptor(k.Catalog(), c, o)),
	}
}

func hookInterceptor(cat *catalog.Catalog, c *codec.Codec, o *Observer) grpc.UnaryServerInterceptor {
	return func(
		ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (resp any, err error) {
		h, ok := cat.ByMethod(info.FullMethod)
		m, isMessage := req.(proto.Message)
		if !ok || !isMessage {
			return handle(ctx, req) // health and reflection
		}
		md, _ := metadata.FromIncomingContext(ctx)
		ctx, in := o.begin(ctx, "gRPC", h.Hook, h, metadataCarrier(md), first(md.Get(CallIDHeader)))
		in.received = int64(proto.Size(m))
		defer func() {
			if p := recover(); p != nil {
				err = recovered(p)
			}
			if err != nil {
				in.fail(err)
				resp, err = nil, grpcError(in.err)
			}
			if values := in.warnings.Values(); values != nil {
				// This fails only outside of a call.
				_ = grpc.SetTrailer(ctx, metadata.MD{strings.ToLower(WarningHeader): values})
			}
			in.end()
		}()
		if err := grpc.SetHeader(ctx, metadata.Pairs(CallIDHeader, in.id)); err != nil {
			return nil, internalError(err)
		}
		if err := c.Check(m); err != nil {
			return nil, hook.Errorf(hook.InvalidRequest, "%s", err)
		}
		resp, err = handle(withIncoming(ctx, &incoming{hook: h, via: via.Of(md.Get(via.Header))}), req)
		if answer, ok := resp.(proto.Message); ok && err == nil {
			in.sent = int64(proto.Size(answer))
		}
		return resp, err
	}
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
