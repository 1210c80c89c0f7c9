// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/registry"
)

// silentDNS returns a lookup at a DNS server that answers nothing, and a channel that is closed with its first query.
func silentDNS(t *testing.T) (lookup connect.Lookup, asked chan struct{}) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	queries := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if _, _, err := server.ReadFrom(make([]byte, 512)); err == nil {
			close(queries)
		}
	})
	t.Cleanup(func() {
		_ = server.Close() // refuses what still waits for an answer
		running.Wait()
	})
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		return resolver.LookupNetIP(ctx, "ip", host)
	}, queries
}

// A request whose time is over while the name is looked up says so, and does not look like one to a server that hangs.
func TestDNSThatDoesNotAnswer(t *testing.T) {
	rest := registry.ClientConfig{URL: "https://ext.example:9443"}
	overGRPC := registry.ClientConfig{URL: "grpcs://ext.example:9090", Protocol: registry.GRPC}
	for name, tc := range map[string]struct {
		config Config
		want   string
		ask    func(ctx context.Context, p *Protocols) error
	}{
		"REST": {Config{}, `handler "v.acme": call extension: `, func(ctx context.Context, p *Protocols) error {
			_, err := p.Call(ctx, newCall(rest))
			return err
		}},
		"HTTP/2": {Config{PreferHTTP2: true}, `handler "v.acme": call extension: `, func(ctx context.Context, p *Protocols) error {
			_, err := p.Call(ctx, newCall(rest))
			return err
		}},
		"gRPC": {Config{}, `handler "v.acme": call extension: `, func(ctx context.Context, p *Protocols) error {
			_, err := p.Call(ctx, newCall(overGRPC))
			return err
		}},
		"Discovery over REST": {Config{}, "discover handlers: ", func(ctx context.Context, p *Protocols) error {
			_, err := p.Discover(ctx, rest)
			return err
		}},
		"Discovery over gRPC": {Config{}, "discover handlers: ", func(ctx context.Context, p *Protocols) error {
			_, err := p.Discover(ctx, overGRPC)
			return err
		}},
		"Probe over REST": {Config{}, "connect: ", func(ctx context.Context, p *Protocols) error {
			_, err := p.Probe(ctx, rest, true)
			return err
		}},
		"Probe over gRPC": {Config{}, "connect: ", func(ctx context.Context, p *Protocols) error {
			_, err := p.Probe(ctx, overGRPC, true)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lookup, asked := silentDNS(t)
			tc.config.LookupHost = lookup
			p := NewProtocols(withHooks(tc.config))
			t.Cleanup(p.Close)
			err := tc.ask(deadline{t.Context(), asked}, p)
			wantError(t, name, nil, err, hook.Unreachable, tc.want+"host name lookup timed out")
		})
	}
}
