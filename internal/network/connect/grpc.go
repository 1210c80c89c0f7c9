// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// redial says when an address that does not answer is tried again: soon, for a server that restarts.
var redial = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
	},
	MinConnectTimeout: TLSTimeout,
}

// GRPCConfig describes a connection over gRPC. All fields but TLS, Control, Bucket and Options are required.
type GRPCConfig struct {
	Scheme    string // of the resolver: "passthrough", or that of a resolver in Options
	Network   string // "tcp" or "unix"
	Address   string // what the resolver is given
	Authority string
	TLS       *tls.Config // nil for none
	// Control is net.Dialer.Control; nil for none.
	Control   func(network, address string, c syscall.RawConn) error
	Failures  *Failures
	BodyBytes int64 // of an answer
	UserAgent string
	Bucket    *overhead.Bucket // shared with other connections; nil for one of its own
	Options   []grpc.DialOption
}

// GRPC is a connection over gRPC, which remembers why it failed last.
type GRPC struct {
	*grpc.ClientConn
	failures  *Failures
	bodyBytes int64
}

// NewGRPC returns a connection, which is made when it is first used.
func NewGRPC(c GRPCConfig) (*GRPC, error) {
	if c.Bucket == nil {
		c.Bucket = overhead.NewBucket(limits.OverheadBytes)
	}
	var dialed dials
	conn, err := grpc.NewClient(c.Scheme+":///"+url.PathEscape(c.Address), append([]grpc.DialOption{
		grpc.WithAuthority(c.Authority),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if err := dialed.wait(ctx, address); err != nil {
				return nil, err
			}
			d := net.Dialer{KeepAlive: keepAlive, Control: c.Control}
			conn, err := d.DialContext(ctx, c.Network, address)
			if err != nil {
				c.Failures.Set(err)
			}
			return conn, err
		}),
		grpc.WithTransportCredentials(newHandshakes(c.TLS, c.Failures, c.Bucket)),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(redial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(c.BodyBytes))),
		grpc.WithMaxHeaderListSize(MaxHeaderBytes),
		grpc.WithStatsHandler(rpcWatcher{}),
		grpc.WithUserAgent(c.UserAgent),
	}, c.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return &GRPC{ClientConn: conn, failures: c.Failures, bodyBytes: c.BodyBytes}, nil
}

// Services returns the names of the server's services, in order, as its server reflection lists them. The error is
// gRPC's.
func (g *GRPC) Services(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := reflectionv1.NewServerReflectionClient(g).ServerReflectionInfo(ctx,
		grpc.MaxCallRecvMsgSize(limits.SideMessageBytes))
	if err != nil {
		return nil, err
	}
	request := &reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}
	_ = stream.Send(request) // Recv returns its error, with the status
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if e := answer.GetErrorResponse(); e != nil {
		return nil, fmt.Errorf("server reflection: %s", e.GetErrorMessage())
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	return names, nil
}

// RPC records how far one call got. It may be written to after the call has ended.
type RPC struct {
	Sent, Received atomic.Int64
	begun          atomic.Bool // the request has been given a connection
	header         atomic.Bool // an answer has begun
	trailer        atomic.Bool // an answer has come to its end: its status is the server's
}

type rpcKey struct{}

// Watch returns the context with which to make the call.
func (r *RPC) Watch(ctx context.Context) context.Context { return context.WithValue(ctx, rpcKey{}, r) }

// Unsent reports whether the server cannot have seen the request.
func (r *RPC) Unsent() bool { return !r.begun.Load() }

// rpcWatcher is the stats.Handler that writes to the RPC of each call.
type rpcWatcher struct{}

var _ stats.Handler = rpcWatcher{}

// TagRPC implements stats.Handler.
func (rpcWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (rpcWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	r, ok := ctx.Value(rpcKey{}).(*RPC)
	if !ok {
		return // a health check
	}
	switch e := event.(type) {
	case *stats.OutHeader:
		r.begun.Store(true)
	case *stats.OutPayload:
		r.Sent.Store(int64(e.Length))
	case *stats.InPayload:
		r.Received.Store(int64(e.Length))
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

// Classify returns why a call that was watched by r failed; nil if the server answered with the status in err.
func (g *GRPC) Classify(r *RPC, err error) *Failure {
	bad := func(reason Reason, text string) *Failure {
		return &Failure{Kind: hook.BadResponse, Reason: reason, Text: text, Cause: err}
	}
	st := status.Convert(err)
	switch text := st.Message(); {
	// gRPC has no types for these.
	case strings.Contains(text, "unexpected HTTP status code"), strings.Contains(text, "unexpected content-type"):
		return bad(NotGRPC, "the server does not speak gRPC")
	// Without the header, the server says so of the request.
	case r.header.Load() && strings.HasPrefix(text, "grpc: received message") &&
		strings.Contains(text, strconv.FormatInt(g.bodyBytes, 10)):
		return bad(Other, fmt.Sprintf("answer is larger than %d bytes", g.bodyBytes))
	case !r.trailer.Load() && strings.Contains(text, "failed to unmarshal"):
		return bad(Other, "answer is not a message of the contract")
	case r.trailer.Load():
		return nil
	case r.header.Load():
		return bad(Other, "answer ended early")
	case st.Code() == codes.Unavailable:
		f := g.failures.classify(text)
		f.Kind = hook.Unreachable
		if f.Cause == nil {
			f.Cause = err
		}
		return f
	}
	return bad(Other, "call was broken off: "+st.Code().String())
}
