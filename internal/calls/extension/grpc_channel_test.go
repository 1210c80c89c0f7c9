// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
)

// Calls take turns on all addresses of a host, and leave out those that do not answer.
func TestGRPCBalances(t *testing.T) {
	ca := newAuthority(t)
	certificate := issue(t, ca, time.Now().Add(time.Hour))
	first := listen(t, "tcp", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var counts [2]atomic.Int64
	count := func(i int) *author {
		return &author{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			counts[i].Add(1)
			return fine(), nil
		}}
	}
	creds := grpc.Creds(credentials.NewServerTLSFromCert(&certificate))
	serveGRPC(t, first, count(0), nil, creds)
	second := serveGRPC(t, listen(t, "tcp", "127.0.0.2:"+port), count(1), nil, creds)

	g := newGRPC(t, Config{LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}, nil
	}})
	cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://ext.example:" + port, CABundle: ca.PEM}
	deadline := time.Now().Add(patience)
	for counts[0].Load() < 5 || counts[1].Load() < 5 {
		if _, err := g.Call(t.Context(), newCall(cc)); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d and %d calls: they do not take turns", counts[0].Load(), counts[1].Load())
		}
	}
	second.GracefulStop()
	for range 20 {
		if _, err := g.Call(t.Context(), newCall(cc)); err != nil {
			t.Fatalf("after one of two servers has gone: %v (%v)", err, errors.Unwrap(err))
		}
	}
}

// fixedEndpoints is a Service whose endpoints the test changes.
type fixedEndpoints struct {
	mu        sync.Mutex
	addresses []netip.AddrPort
	changed   chan struct{}
}

func (e *fixedEndpoints) Of(host string) ([]netip.AddrPort, <-chan struct{}) {
	if host != "acme.default.svc" {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addresses, e.changed
}

func (e *fixedEndpoints) set(addresses ...netip.AddrPort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addresses = addresses
	close(e.changed)
	e.changed = make(chan struct{})
}

// Calls of a Service take turns on its endpoints, at once on new ones; where none is known, they go to its own address.
func TestGRPCBalancesOverEndpoints(t *testing.T) {
	ca := newAuthority(t)
	pair, err := ca.Issue(time.Now().Add(time.Hour), "acme.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate := certificates.Of(t, pair)
	var counts [3]atomic.Int64
	var addresses [3]netip.AddrPort
	for i := range addresses {
		l := listen(t, "tcp", "127.0.0.1:0")
		addresses[i] = netip.MustParseAddrPort(l.Addr().String())
		serveGRPC(t, l, &author{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			counts[i].Add(1)
			return fine(), nil
		}}, nil, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	}
	endpoints := &fixedEndpoints{changed: make(chan struct{})}
	var lookups atomic.Int64
	g := newGRPC(t, Config{Endpoints: endpoints, LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		lookups.Add(1)
		return []netip.Addr{addresses[0].Addr()}, nil
	}})
	// The port of the URL is the Service's, which only its own address has.
	cc := registry.ClientConfig{Protocol: registry.GRPC, InCluster: true, URL: fmt.Sprintf("https://acme.default.svc:%d", addresses[0].Port()), CABundle: ca.PEM}

	// settles waits until calls go to these servers and no others.
	settles := func(reason string, want ...int) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			for i := range counts {
				counts[i].Store(0)
			}
			for range 12 {
				if _, err := g.Call(t.Context(), newCall(cc)); err != nil {
					t.Fatalf("%s: %v (%v)", reason, err, errors.Unwrap(err))
				}
			}
			var got []int
			for i := range counts {
				if counts[i].Load() > 0 {
					got = append(got, i)
				}
			}
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: calls go to %v, want %v", reason, got, want)
			}
		}
	}
	settles("no endpoints are known", 0)
	endpoints.set(addresses[1], addresses[2])
	settles("two endpoints", 1, 2)
	before := lookups.Load()
	endpoints.set(addresses[2])
	settles("one has gone", 2)
	if got := lookups.Load(); got != before {
		t.Errorf("the name was looked up %d times while the endpoints are known", got-before)
	}
	endpoints.set(addresses[0], addresses[1], addresses[2])
	settles("three", 0, 1, 2)
}

// An extension that restarts is called as soon as it is back, and calls that are under way survive a Retain without it.
func TestGRPCComesBack(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "extension.sock")
	cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "unix://" + socket}
	g := newGRPC(t, Config{})
	m, err := callGRPC(t.Context(), g, newCall(cc))
	wantError(t, "it has not started", m, err, hook.Unreachable, `handler "v.acme": call extension: there is no such socket`)
	for range 2 {
		s := serveGRPC(t, listen(t, "unix", socket), &author{}, nil)
		deadline := time.Now().Add(patience)
		for {
			_, err := g.Call(t.Context(), newCall(cc))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("it has started, but: %v (%v)", err, errors.Unwrap(err))
			}
			time.Sleep(10 * time.Millisecond)
		}
		s.Stop()
	}
}

// As long as a server that is about to start has accepted a connection and said nothing, the text of the failure stays.
func TestGRPCServerThatStartsSlowly(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "extension.sock")
	g := newGRPC(t, Config{})
	cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "unix://" + socket}
	const want = `handler "v.acme": call extension: there is no such socket`
	m, err := callGRPC(t.Context(), g, newCall(cc))
	wantError(t, "it has not started", m, err, hook.Unreachable, want)
	l := listen(t, "unix", socket)
	t.Cleanup(func() { _ = l.Close() })
	c, err := l.Accept() // as the kernel does for a program that is busy
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 24)); err != nil { // the client's greeting: for it, the connection has come about
		t.Fatal(err)
	}
	m, err = callGRPC(t.Context(), g, newCall(cc))
	wantError(t, "it has not answered yet", m, err, hook.Unreachable, want)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for strings.HasSuffix(err.Error(), "there is no such socket") {
		if time.Now().After(deadline) {
			t.Fatal("it has broken off, which is not seen")
		}
		time.Sleep(10 * time.Millisecond)
		m, err = callGRPC(t.Context(), g, newCall(cc))
	}
	wantError(t, "it has broken off, as servers do that want TLS", m, err, hook.Unreachable, `handler "v.acme": call extension: the server does not speak gRPC without TLS`)
}
