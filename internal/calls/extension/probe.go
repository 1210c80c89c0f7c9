// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/registry"
)

// Probe looks whether the server of the extension at cc is there, without calling a hook, within limits.ProbeTimeout.
// It reports whether it has seen anything new: the idle connection that calls use next costs only a system call, and
// says nothing while it is still open. If that is closed, or fresh is set, Probe connects, with TLS, and keeps the
// connection for calls. It does not look through proxies.
func (r *REST) Probe(ctx context.Context, cc registry.ClientConfig, fresh bool) (looked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limits.ProbeTimeout)
	defer cancel()
	x := &restRequest{request: probeRequest()}
	if x.route, err = r.routes.get(cc); err != nil {
		return true, x.fail(hook.Unreachable, err.Error(), err)
	}
	p := x.route.host.acquire(r.now())
	defer p.release()
	if p.http1 == nil && !x.route.host.isPlain() {
		return false, nil
	}
	if p.http1 == nil {
		return true, x.handshake(ctx, p)
	}
	if !fresh && p.http1.hasIdle() {
		return false, nil
	}
	c, err := p.http1.dial(ctx)
	if err != nil {
		return true, x.unanswered(ctx, err)
	}
	x.route.outage.end()
	p.http1.put(newHTTP1Conn(c))
	return true, nil
}

// handshake connects to a server that speaks HTTP/2, whose client keeps its connections to itself.
func (x *restRequest) handshake(ctx context.Context, p *pool) error {
	raw, err := p.dial(ctx, "tcp", p.host.endpoint.Address)
	if err != nil {
		return x.unanswered(ctx, err)
	}
	defer func() { _ = raw.Close() }() // nothing was sent
	config := p.host.clientTLS()
	config.NextProtos, config.ServerName = []string{"h2"}, p.host.endpoint.Host
	if err := tls.Client(raw, config).HandshakeContext(ctx); err != nil {
		return x.unanswered(ctx, err)
	}
	x.route.outage.end()
	return nil
}

// probeRequest returns what the errors of a probe are about.
func probeRequest() request {
	return request{operation: "connect", timeout: limits.ProbeTimeout}
}

// hasIdle reports whether there is an idle connection that is still open, and closes those that are not.
func (h *http1) hasIdle() bool {
	for c := h.takeIdle(); c != nil; c = h.takeIdle() {
		if c.isAlive() {
			h.put(c)
			return true
		}
		_ = c.Close()
	}
	return false
}

// Probe looks whether the server of the extension at cc is there, as REST.Probe does. The connection that calls use is
// watched by gRPC, with the standard health service if there is one. If it is not ready, or fresh is set, Probe asks
// that service; any answer of a server without it will do.
func (g *GRPC) Probe(ctx context.Context, cc registry.ClientConfig, fresh bool) (looked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limits.ProbeTimeout)
	defer cancel()
	x := probeRequest()
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return true, x.fail(hook.Unreachable, err.Error(), err)
	}
	defer channel.release()
	if !fresh && channel.conn.GetState() == connectivity.Ready {
		return false, nil
	}
	channel.conn.ResetConnectBackoff()
	rpc := &connect.RPC{}
	answer, err := healthv1.NewHealthClient(channel.conn).Check(rpc.Watch(ctx), &healthv1.HealthCheckRequest{})
	switch {
	case err == nil && answer.GetStatus() == healthv1.HealthCheckResponse_NOT_SERVING:
		return true, x.fail(hook.Unreachable, "the server says that it is not serving", nil)
	case err == nil:
		channel.outage.end()
		return true, nil
	case ctx.Err() != nil, status.Code(err) == codes.DeadlineExceeded:
		x.unresolved = channel.hosts.unresolved(rpc)
		return true, x.ended(ctx, err)
	}
	if f := channel.conn.Classify(rpc, err); f != nil && f.Kind == hook.Unreachable {
		return true, x.failed(f, err)
	}
	channel.outage.end()
	return true, nil // the server answered
}

// Probe looks whether the server of an extension is there, as REST.Probe and GRPC.Probe do.
func (p *Protocols) Probe(ctx context.Context, cc registry.ClientConfig, fresh bool) (looked bool, err error) {
	if cc.Protocol == registry.GRPC {
		return p.grpc.Probe(ctx, cc, fresh)
	}
	return p.rest.Probe(ctx, cc, fresh)
}
