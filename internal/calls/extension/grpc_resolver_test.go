// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// stateRecorder is a grpcresolver.ClientConn that records states and errors.
type stateRecorder struct {
	grpcresolver.ClientConn
	states [][]string
	errs   []error
}

func (r *stateRecorder) UpdateState(s grpcresolver.State) error {
	var addresses []string
	for _, a := range s.Addresses {
		addresses = append(addresses, a.Addr)
	}
	r.states = append(r.states, addresses)
	return nil
}

func (r *stateRecorder) ReportError(err error) { r.errs = append(r.errs, err) }

// A host is looked up at once, every 30 s, and when gRPC asks for it, but never within a second of the last time.
func TestHostsAreLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var lookups []time.Duration
		failures := &connect.Failures{}
		b := &hostResolvers{
			endpoint: &endpoint.Endpoint{Network: "tcp", Address: "ext.example:9090"}, failures: failures,
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				lookups = append(lookups, time.Since(start))
				if len(lookups) == 2 {
					return nil, errors.New("away")
				}
				return []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.2"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, nil
			},
		}
		cc := &stateRecorder{}
		r, err := b.Build(grpcresolver.Target{}, cc, grpcresolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.ResolveNow(grpcresolver.ResolveNowOptions{}) // at once after the first: it has to wait
		r.ResolveNow(grpcresolver.ResolveNowOptions{})
		time.Sleep(45 * time.Second)
		r.ResolveNow(grpcresolver.ResolveNowOptions{})
		synctest.Wait()
		r.Close()
		want := []time.Duration{0, time.Second, 32 * time.Second, 45 * time.Second}
		if diff := cmp.Diff(want, lookups); diff != "" {
			t.Errorf("lookups: -want +got\n%s", diff)
		}
		if len(cc.errs) != 1 || failures.Latest() == nil || len(cc.states) != 3 {
			t.Errorf("got errors %v and %d states; want the failure of the second lookup, and three states", cc.errs, len(cc.states))
		}
		if diff := cmp.Diff([]string{"10.0.0.1:9090", "10.0.0.2:9090", "[fd00::1]:9090"}, cc.states[0]); diff != "" {
			t.Errorf("addresses: -want +got\n%s", diff)
		}
	})
}

// Endpoints that are known take the place of the lookup, and a change of them takes effect at once.
func TestEndpointsTakeThePlaceOfTheLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoints := &fixedEndpoints{changed: make(chan struct{})}
		lookups := 0
		b := &hostResolvers{
			endpoint: &endpoint.Endpoint{Network: "tcp", Address: "acme.default.svc:443"}, failures: &connect.Failures{}, endpoints: endpoints,
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				lookups++
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			},
		}
		cc := &stateRecorder{}
		r, err := b.Build(grpcresolver.Target{}, cc, grpcresolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		synctest.Wait()
		endpoints.set(netip.MustParseAddrPort("10.1.0.1:9443"), netip.MustParseAddrPort("10.1.0.2:9443"))
		synctest.Wait() // no time has passed
		endpoints.set()
		synctest.Wait()
		want := [][]string{{"10.0.0.1:443"}, {"10.1.0.1:9443", "10.1.0.2:9443"}, {"10.0.0.1:443"}}
		if diff := cmp.Diff(want, cc.states); diff != "" || lookups != 2 {
			t.Errorf("states: -want +got\n%s\n%d lookups, want 2", diff, lookups)
		}
	})
}

// Of a host with many addresses, so many are used, whether they are looked up or known.
func TestAddressesAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []netip.Addr
		var known []netip.AddrPort
		a := netip.MustParseAddr("10.0.0.1")
		for range maxAddresses + 1 {
			many, known = append(many, a), append(known, netip.AddrPortFrom(a, 443))
			a = a.Next()
		}
		endpoints := &fixedEndpoints{changed: make(chan struct{})}
		b := &hostResolvers{
			endpoint: &endpoint.Endpoint{Network: "tcp", Address: "acme.default.svc:443"}, failures: &connect.Failures{}, endpoints: endpoints,
			lookup: func(context.Context, string) ([]netip.Addr, error) { return many, nil },
		}
		cc := &stateRecorder{}
		r, err := b.Build(grpcresolver.Target{}, cc, grpcresolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		synctest.Wait()
		endpoints.set(known...)
		synctest.Wait()
		for i, state := range cc.states {
			if len(state) != maxAddresses || state[0] != "10.0.0.1:443" {
				t.Errorf("state %d has %d addresses, the first of which is %s", i, len(state), state[0])
			}
		}
		if len(cc.states) != 2 {
			t.Errorf("%d states", len(cc.states))
		}
	})
}

// An address that needs no lookup is resolved once, unchanged.
func TestAddressesThatAreNotLookedUp(t *testing.T) {
	for address, network := range map[string]string{"127.0.0.1:9090": "tcp", "[::1]:9090": "tcp", "/run/extension.sock": "unix"} {
		cc := &stateRecorder{}
		b := &hostResolvers{endpoint: &endpoint.Endpoint{Network: network, Address: address}, lookup: func(context.Context, string) ([]netip.Addr, error) {
			t.Errorf("%s was looked up", address)
			return nil, nil
		}}
		r, err := b.Build(grpcresolver.Target{}, cc, grpcresolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.ResolveNow(grpcresolver.ResolveNowOptions{})
		r.Close()
		if diff := cmp.Diff([][]string{{address}}, cc.states); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}
