// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
)

// grpcTransport calls the services of the contract as the gateway does.
type grpcTransport struct {
	codec *codec.Codec
	conn  *grpc.ClientConn
}

var _ transport = (*grpcTransport)(nil)

func newGRPCTransport(e *endpoint, config *tls.Config, c *codec.Codec) (*grpcTransport, error) {
	transport := insecure.NewCredentials()
	if config != nil {
		config = config.Clone()
		config.ServerName = "" // gRPC takes it from the authority
		transport = credentials.NewTLS(config)
	}
	authority := e.address
	if e.network == "unix" {
		authority = "localhost" // a path is no authority that servers take
	}
	conn, err := grpc.NewClient("passthrough:///"+e.address,
		grpc.WithTransportCredentials(transport),
		grpc.WithAuthority(authority),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.dial(ctx) }),
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("hookgate"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBytes), grpc.MaxCallSendMsgSize(2*maxBytes)), // load.over sends more
	)
	if err != nil {
		return nil, err
	}
	return &grpcTransport{codec: c, conn: conn}, nil
}

func (t *grpcTransport) close() { _ = t.conn.Close() }

func (t *grpcTransport) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *exchange {
	if fd := req.ProtoReflect().Descriptor().Fields().ByName("handler"); fd != nil {
		req = proto.Clone(req)
		req.ProtoReflect().Set(fd, protoreflect.ValueOfString(handler))
	}
	x := &exchange{handler: handler, sent: fmt.Sprintf("%s, %s", h.Method, size(proto.Size(req)))}
	if proto.Size(req) < 64<<10 { // others are padded, and their beginning tells nothing
		x.sent += ": " + excerpt(render(req))
	}
	out := h.Response.New().Interface()
	t.invoke(ctx, x, h.Method, req, out)
	if x.outcome == answered {
		x.body, x.message = render(out), out
		if err := t.codec.Check(out); err != nil {
			x.message, x.wrong = nil, err
		}
		x.decoded()
	}
	return x
}

func (t *grpcTransport) send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *exchange {
	x := &exchange{handler: handler, sent: fmt.Sprintf("%s, %s that are no message: %q", h.Method, size(len(body)), body[:min(len(body), 40)])}
	var out []byte
	t.invoke(ctx, x, h.Method, &body, &out, grpc.ForceCodec(asBytes{}))
	return x
}

func (t *grpcTransport) invoke(ctx context.Context, x *exchange, method string, in, out any, options ...grpc.CallOption) {
	start := time.Now()
	err := t.conn.Invoke(ctx, method, in, out, options...)
	x.took = time.Since(start)
	st := status.Convert(err)
	x.code, x.text = "gRPC "+st.Code().String(), st.Message()
	switch st.Code() {
	case codes.OK:
	case codes.InvalidArgument, codes.NotFound, codes.Unimplemented, codes.FailedPrecondition, codes.OutOfRange,
		codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated, codes.AlreadyExists:
		x.outcome = refused
	case codes.DeadlineExceeded, codes.Canceled:
		x.outcome, x.err, x.code = late, err, ""
	case codes.Unavailable:
		x.outcome, x.err, x.code = lost, err, ""
	default:
		x.outcome = failed
	}
}

// asBytes is a codec of messages that are bytes already.
type asBytes struct{}

// Marshal implements encoding.Codec.
func (asBytes) Marshal(v any) ([]byte, error) {
	if b, ok := v.(*[]byte); ok {
		return *b, nil
	}
	return nil, fmt.Errorf("%T is not bytes", v)
}

// Unmarshal implements encoding.Codec.
func (asBytes) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is not bytes", v)
	}
	*b = data
	return nil
}

// Name implements encoding.Codec: to the server they are protobuf.
func (asBytes) Name() string { return "proto" }
