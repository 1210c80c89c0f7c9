// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/gateway"
)

// grpcClient calls hooks over gRPC.
type grpcClient struct {
	target  target
	options *clientOptions
	codec   *codec.Codec
	conn    *grpc.ClientConn
	dialed  *dialErrors
}

var _ client = (*grpcClient)(nil)

func newGRPCClient(t target, config *tls.Config, c *codec.Codec, o *clientOptions) (*grpcClient, error) {
	dialed := &dialErrors{}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = &watchedTLS{TransportCredentials: credentials.NewTLS(config), errors: dialed}
	}
	conn, err := grpc.NewClient("passthrough:///"+t.host,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(dialed.dial),
		grpc.WithUserAgent(userAgent()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(gateway.MaxBodyBytes), grpc.MaxCallSendMsgSize(gateway.MaxBodyBytes)),
	)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", t.text, err)
	}
	return &grpcClient{target: t, options: o, codec: c, conn: conn, dialed: dialed}, nil
}

func (c *grpcClient) close() error { return c.conn.Close() }

func (c *grpcClient) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (*answer, error) {
	setHandler(req, handler)
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	message := h.Response.New().Interface()
	var header, trailer metadata.MD
	err := c.conn.Invoke(ctx, h.Method, req, message, grpc.Header(&header), grpc.Trailer(&trailer))
	c.options.warn(trailer.Get(gateway.WarningHeader))
	if err != nil {
		return nil, c.explain(err, header)
	}
	bad := func(err error) error {
		return &callError{status: "gRPC OK", message: fmt.Sprintf("the answer cannot be written as JSON: %s", err), callID: callIDOf(header)}
	}
	if err := c.codec.Check(message); err != nil {
		return nil, bad(err)
	}
	body, err := c.codec.Append(nil, message)
	if err != nil {
		return nil, bad(err)
	}
	return &answer{message: message, body: body, callID: callIDOf(header)}, nil
}

// setHandler sets the field that names the handler; Discovery has none.
func setHandler(req proto.Message, handler string) {
	m := req.ProtoReflect()
	if field := m.Descriptor().Fields().ByName("handler"); field != nil && handler != "" {
		m.Set(field, protoreflect.ValueOfString(handler))
	}
}

// explain tells an error that the server answered from one of the connection.
func (c *grpcClient) explain(err error, header metadata.MD) error {
	st := status.Convert(err)
	e := &callError{status: "gRPC " + st.Code().String(), message: st.Message(), callID: callIDOf(header)}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			e.kind = info.GetReason()
		}
	}
	switch {
	case e.kind != "" || e.callID != "":
		return e
	case strings.HasPrefix(e.message, "unexpected HTTP status code"):
		e.message = "this is no server of gRPC"
		e.hint = "Is it one of HTTPS JSON? That is --server https://" + c.target.host + "."
	case st.Code() == codes.DeadlineExceeded:
		if last := c.dialed.last(); last != nil {
			return connectionError(last, c.target, c.options)
		}
		return connectionError(context.DeadlineExceeded, c.target, c.options)
	case st.Code() == codes.Canceled:
		return connectionError(context.Canceled, c.target, c.options)
	case st.Code() == codes.Unavailable:
		if last := c.dialed.last(); last != nil {
			return connectionError(last, c.target, c.options)
		}
		text := strings.TrimSuffix(strings.TrimPrefix(st.Message(), `connection error: desc = "`), `"`)
		return connectionError(errors.New(text), c.target, c.options)
	case st.Code() == codes.Unimplemented:
		e.hint = "The server does not serve this hook."
	}
	return e
}

func callIDOf(md metadata.MD) string {
	if values := md.Get(gateway.CallIDHeader); len(values) > 0 {
		return values[0]
	}
	return ""
}

// dialErrors remembers why the last connection was not made: gRPC turns the error into text. It is safe for concurrent
// use, because gRPC dials in goroutines of its own.
type dialErrors struct {
	mu  sync.Mutex
	err error
}

func (d *dialErrors) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialErrors) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *dialErrors) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	d.set(err)
	return conn, err
}

// watchedTLS is TLS whose handshake errors are remembered.
type watchedTLS struct {
	credentials.TransportCredentials
	errors *dialErrors
}

// ClientHandshake does the handshake.
func (w *watchedTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	w.errors.set(err)
	return conn, info, err
}

// Clone returns a copy that remembers in the same place.
func (w *watchedTLS) Clone() credentials.TransportCredentials {
	return &watchedTLS{TransportCredentials: w.TransportCredentials.Clone(), errors: w.errors}
}
