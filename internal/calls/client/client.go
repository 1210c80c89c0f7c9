// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client calls hooks of one server, a gateway or an extension, once for each request and without hiding
// anything of the answer: for people on the command line, and for checks. It makes connections as the gateway does.
//
// A Client is safe for concurrent use. A Response belongs to its caller.
package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/internal/network/wire"
)

// Config describes how a server is called. All fields but Token and Dial are required.
type Config struct {
	Endpoint  *endpoint.Endpoint
	TLS       *tls.Config // without effect if the endpoint has none
	Codec     *codec.Codec
	UserAgent string
	// Token is sent with each call as a bearer token. Empty means none.
	Token string
	// Dial makes the connections. By default, they are made directly, or over HTTP through the proxy of the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wait makes calls over gRPC wait, until their deadlines, for a server that cannot be connected to for now. By
	// default, they fail at once, also while gRPC pauses before it connects again.
	Wait bool
	// Idle is the number of idle connections to keep, and thus of concurrent calls that need no new ones.
	Idle int
}

// Client calls hooks of one server.
type Client struct {
	config Config
	http   *http.Client  // for JSON
	grpc   *connect.GRPC // for gRPC

	// certificateAsked is set once the server has requested a certificate and the client had none.
	certificateAsked atomic.Bool
}

// New returns a client that has not connected yet.
func New(config Config) (*Client, error) {
	c := &Client{config: config}
	secure := config.TLS.Clone()
	if len(secure.Certificates) == 0 {
		secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c.certificateAsked.Store(true)
			return &tls.Certificate{}, nil // none
		}
	}
	if !config.Endpoint.IsGRPC() {
		transport := connect.NewTransport(secure, true, config.Idle)
		transport.Proxy = http.ProxyFromEnvironment
		if config.Dial != nil {
			transport.Proxy, transport.DialContext = nil, config.Dial
		}
		c.http = &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		return c, nil
	}
	if !config.Endpoint.HasTLS() {
		secure = nil
	}
	failures := &connect.Failures{}
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.New()))}
	if config.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := config.Dial(ctx, config.Endpoint.Network, address)
			if err != nil {
				failures.Set(err)
			}
			return conn, err
		}))
	}
	var err error
	c.grpc, err = connect.NewGRPC(connect.GRPCConfig{
		Scheme: "passthrough", Network: config.Endpoint.Network, Address: config.Endpoint.Address,
		Authority: config.Endpoint.Authority, TLS: secure, Failures: failures, BodyBytes: limits.BodyBytes,
		UserAgent: config.UserAgent,
		Options:   options,
	})
	return c, err
}

// GRPC returns the connection over gRPC; nil if the server is called over HTTP.
func (c *Client) GRPC() *connect.GRPC { return c.grpc }

// Close closes the connections.
func (c *Client) Close() {
	if c.grpc != nil {
		_ = c.grpc.Close() // an error would say that it is closed
		return
	}
	c.http.CloseIdleConnections()
}

// Response is the result of a request. If Failure is nil, the server answered, with an answer of the hook or with an
// error.
type Response struct {
	Failure *connect.Failure

	// Status is "HTTP 502 Bad Gateway" or "gRPC Unavailable"; empty if nothing came.
	Status   string
	HTTPCode int            // over HTTP
	GRPC     *status.Status // over gRPC; nil for OK
	Header   http.Header    // over gRPC, the metadata of header and trailer

	// Body is the body over HTTP, and the JSON of a valid answer over gRPC. One that is too large is cut a byte after
	// the limit.
	Body []byte
	// Message is the answer of the hook, and Invalid the reason why it is invalid. Over HTTP, an invalid answer has no
	// Message.
	Message proto.Message
	Invalid error
}

// OK reports whether the response is the answer of a hook.
func (r *Response) OK() bool {
	return r.Failure == nil && (r.HTTPCode == http.StatusOK || r.HTTPCode == 0 && r.GRPC.Err() == nil)
}

// IsGRPC reports whether an answer over HTTP comes from a gRPC server.
func (r *Response) IsGRPC() bool {
	return r.HTTPCode != 0 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// Call sends a request to a handler; for an empty one, the server chooses.
func (c *Client) Call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *Response {
	if c.grpc != nil {
		return c.invoke(ctx, h, catalog.WithHandler(req, handler))
	}
	body, err := c.config.Codec.Append(nil, req)
	if err != nil {
		return &Response{Failure: &connect.Failure{
			Kind: hook.InvalidRequest, Text: "write request: " + err.Error(), Cause: err,
		}}
	}
	return c.post(ctx, h, handler, body)
}

// Send sends bytes that need not be a request.
func (c *Client) Send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *Response {
	if c.grpc == nil {
		return c.post(ctx, h, handler, body)
	}
	var answer []byte
	return c.exchange(ctx, h, &body, &answer, grpc.ForceCodec(rawCodec{}))
}

// failure returns why a request has failed, with the end of ctx and certificates that were asked for before anything
// else.
func (c *Client) failure(ctx context.Context, f *connect.Failure) *connect.Failure {
	switch {
	case ctx.Err() == context.Canceled:
		return &connect.Failure{Kind: hook.Canceled, Text: "interrupted", Cause: f}
	case ctx.Err() != nil, status.Code(f.Cause) == codes.DeadlineExceeded: // gRPC may notice it first
		return &connect.Failure{Kind: hook.Timeout, Text: "no answer in time", Cause: f}
	case c.certificateAsked.Load() && (f.Reason == connect.Broken || f.Reason == connect.HandshakeRefused):
		// How such a connection ends depends on timing.
		f.Reason = connect.CertificateRequired
		f.Text = "the server asked for a client certificate, and ended the connection without one"
	}
	return f
}
