// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

const (
	// hostScheme is the scheme of the names that hostResolver resolves. Only channels know it.
	hostScheme = "hookgate"
	// lookupPeriod is how often a host is looked up, to find addresses that came and went.
	lookupPeriod = 30 * time.Second
	// lookupPause is the least time between two lookups, however often connections break.
	lookupPause = time.Second
	// maxAddresses is the number of addresses of a host that calls take turns on: grpc keeps a connection to each.
	maxAddresses = limits.Addresses
)

// Endpoints knows the endpoints of Services. It must be safe for concurrent use.
type Endpoints interface {
	// Of returns the addresses of the endpoints of the Service with that host, name.namespace.svc, or none if they are
	// not known. It closes changed when they change.
	Of(host string) (addresses []netip.AddrPort, changed <-chan struct{})
}

// hostResolvers makes the resolver of one channel.
type hostResolvers struct {
	endpoint  *endpoint.Endpoint
	endpoints Endpoints // nil if the host is not a Service's, or its endpoints are not followed
	lookup    connect.Lookup
	failures  *connect.Failures

	// pending reports whether the host is looked up and has had no address yet.
	pending atomic.Bool
}

// unresolved returns the error of a call that was not sent when its time was over, if the lookup of the host is why.
func (b *hostResolvers) unresolved(rpc *connect.RPC) error {
	if rpc.Unsent() && b.pending.Load() {
		return connect.Unresolved(b.endpoint.Host)
	}
	return nil
}

// Scheme implements grpcresolver.Builder.
func (*hostResolvers) Scheme() string { return hostScheme }

// Build implements grpcresolver.Builder.
func (b *hostResolvers) Build(
	_ grpcresolver.Target, cc grpcresolver.ClientConn, _ grpcresolver.BuildOptions,
) (grpcresolver.Resolver, error) {
	host, port := "", ""
	if b.endpoint.Network == "tcp" {
		var err error
		if host, port, err = net.SplitHostPort(b.endpoint.Address); err != nil {
			return nil, err
		}
	}
	if _, err := netip.ParseAddr(host); err == nil || b.endpoint.Network == "unix" {
		// What UpdateState returns matters only to resolvers that can look again.
		_ = cc.UpdateState(grpcresolver.State{Addresses: []grpcresolver.Address{{Addr: b.endpoint.Address}}})
		return staticResolver{}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &hostResolver{hostResolvers: b, cc: cc, host: host, port: port, again: make(chan struct{}, 1), cancel: cancel}
	b.pending.Store(true)
	r.running.Go(func() { r.run(ctx) })
	return r, nil
}

// staticResolver is for what needs no lookup.
type staticResolver struct{}

func (staticResolver) ResolveNow(grpcresolver.ResolveNowOptions) {}
func (staticResolver) Close()                                    {}

// hostResolver looks up a host until it is closed.
type hostResolver struct {
	*hostResolvers
	cc         grpcresolver.ClientConn
	host, port string
	again      chan struct{}
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

// ResolveNow implements grpcresolver.Resolver.
func (r *hostResolver) ResolveNow(grpcresolver.ResolveNowOptions) {
	select {
	case r.again <- struct{}{}:
	default: // a lookup is due already
	}
}

// Close implements grpcresolver.Resolver.
func (r *hostResolver) Close() {
	r.cancel()
	r.running.Wait()
}

func (r *hostResolver) run(ctx context.Context) {
	for {
		var known []netip.AddrPort
		var changed <-chan struct{} // never, without endpoints
		if r.endpoints != nil {
			known, changed = r.endpoints.Of(r.host)
		}
		if len(known) > 0 {
			r.use(known)
		} else {
			r.resolve(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-time.After(lookupPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-r.again:
		case <-time.After(lookupPeriod):
		}
	}
}

// use sets the addresses that calls take turns on.
func (r *hostResolver) use(known []netip.AddrPort) {
	r.pending.Store(false)
	known = known[:min(len(known), maxAddresses)]
	addresses := make([]grpcresolver.Address, len(known))
	for i, a := range known {
		addresses[i].Addr = a.String()
	}
	_ = r.cc.UpdateState(grpcresolver.State{Addresses: addresses}) // with an error, the channel says so by itself
}

func (r *hostResolver) resolve(ctx context.Context) {
	found, err := r.lookup.Resolve(ctx, r.host)
	if ctx.Err() != nil {
		return
	}
	r.pending.Store(false)
	if err != nil {
		r.failures.Set(err)
		r.cc.ReportError(err)
		return
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = found[:min(len(found), maxAddresses)]
	addresses := make([]grpcresolver.Address, len(found))
	for i, a := range found {
		addresses[i].Addr = net.JoinHostPort(a.Unmap().String(), r.port)
	}
	_ = r.cc.UpdateState(grpcresolver.State{Addresses: addresses}) // with an error, the channel says so by itself
}
