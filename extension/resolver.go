// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	grpcresolver "google.golang.org/grpc/resolver"
)

const (
	// hostScheme is that of the names that hostResolver resolves. It is known to the channels alone.
	hostScheme = "hookgate"
	// lookupPeriod is how often a host is looked up, to find addresses that came and went.
	lookupPeriod = 30 * time.Second
	// lookupPause is the least time between two lookups, however often connections break.
	lookupPause = time.Second
)

// Endpoints knows where the endpoints of Services are. It must be safe for concurrent use.
type Endpoints interface {
	// Of returns the addresses of the endpoints of the Service with that host, name.namespace.svc; none where they are not
	// known. changed is closed when that has changed.
	Of(host string) (addresses []netip.AddrPort, changed <-chan struct{})
}

// dialControl is the type of net.Dialer.Control.
type dialControl = func(network, address string, c syscall.RawConn) error

// hostResolvers makes the resolver of one channel.
type hostResolvers struct {
	endpoint  *endpoint
	endpoints Endpoints // nil if the host is not a Service's, or nobody knows
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)
	failure   *failure
}

// Scheme implements grpcresolver.Builder.
func (*hostResolvers) Scheme() string { return hostScheme }

// Build implements grpcresolver.Builder.
func (b *hostResolvers) Build(_ grpcresolver.Target, cc grpcresolver.ClientConn, _ grpcresolver.BuildOptions) (grpcresolver.Resolver, error) {
	host, port := "", ""
	if b.endpoint.network == "tcp" {
		var err error
		if host, port, err = net.SplitHostPort(b.endpoint.address); err != nil {
			return nil, err
		}
	}
	if _, err := netip.ParseAddr(host); err == nil || b.endpoint.network == "unix" {
		// What UpdateState returns is of use only to those who can look again.
		_ = cc.UpdateState(grpcresolver.State{Addresses: []grpcresolver.Address{{Addr: b.endpoint.address}}})
		return staticResolver{}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &hostResolver{hostResolvers: b, cc: cc, host: host, port: port, again: make(chan struct{}, 1), cancel: cancel}
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
	default: // it was asked for already
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

// use makes calls take turns on these addresses.
func (r *hostResolver) use(known []netip.AddrPort) {
	addresses := make([]grpcresolver.Address, len(known))
	for i, a := range known {
		addresses[i].Addr = a.String()
	}
	_ = r.cc.UpdateState(grpcresolver.State{Addresses: addresses}) // with an error, the channel says so by itself
}

func (r *hostResolver) resolve(ctx context.Context) {
	found, err := resolve(ctx, r.lookup, r.host)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.failure.set(err)
		r.cc.ReportError(err)
		return
	}
	slices.SortFunc(found, netip.Addr.Compare)
	addresses := make([]grpcresolver.Address, len(found))
	for i, a := range found {
		addresses[i].Addr = net.JoinHostPort(a.Unmap().String(), r.port)
	}
	_ = r.cc.UpdateState(grpcresolver.State{Addresses: addresses}) // with an error, the channel says so by itself
}
