// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/registry"
)

// Connections serve new calls until their age is MaxConnectionAge, and not at that age.
func TestConnectionsAtTheirAge(t *testing.T) {
	const age = time.Minute
	cc := registry.ClientConfig{URL: "https://ext.example"}
	start := time.Unix(0, 0)
	r := newREST(t, Config{MaxConnectionAge: age})
	rt, err := r.routes.get(cc)
	if err != nil {
		t.Fatal(err)
	}
	first := rt.host.acquire(start)
	if p := rt.host.acquire(start.Add(age - 1)); p != first {
		t.Error("REST: the connections were replaced before their time")
	} else {
		p.release()
	}
	second := rt.host.acquire(start.Add(age))
	if second == first {
		t.Error("REST: the connections were not replaced")
	}
	second.release()
	first.release()

	cc.Protocol = registry.GRPC
	g := newGRPC(t, Config{MaxConnectionAge: age})
	at := func(now time.Time) *channel {
		c, err := g.channels.get(cc, now)
		if err != nil {
			t.Fatal(err)
		}
		c.release()
		return c
	}
	old := at(start)
	if at(start.Add(age-1)) != old {
		t.Error("gRPC: the channel was replaced before its time")
	}
	if at(start.Add(age)) == old {
		t.Error("gRPC: the channel was not replaced")
	}
}

// A channel that was given up closes when the last of its calls has ended, and not before.
func TestGRPCChannelClosesAfterItsCalls(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	cc := newAuthor(t, newAuthority(t), &author{create: func(
		context.Context, *hooksv1alpha1.BeforeClusterCreateRequest,
	) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
		if calls.Add(1) == 1 {
			close(started)
			<-finish
		}
		return fine(), nil
	}}, nil)
	g := newGRPC(t, Config{})
	c, err := g.channels.get(cc, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.release()
	done := make(chan error, 1)
	go func() {
		_, err := callGRPC(t.Context(), g, newCall(cc))
		done <- err
	}()
	<-started
	g.Retain(nil)
	if state := c.conn.GetState(); state == connectivity.Shutdown {
		t.Error("the channel closed under its call")
	}
	if _, err := callGRPC(t.Context(), g, newCall(cc)); err != nil {
		t.Errorf("a call after that: %v", err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Errorf("the call: %v", err)
	}
	if state := c.conn.GetState(); state != connectivity.Shutdown {
		t.Errorf("the channel is %s when its last call has ended, want it closed", state)
	}
}

// Of an extension that changes its protocol, the connections of the old one are given up.
func TestRetainByProtocol(t *testing.T) {
	p := NewProtocols(withHooks(Config{}))
	t.Cleanup(p.Close)
	rest := registry.ClientConfig{URL: "https://ext.example"}
	grpc := rest
	grpc.Protocol = registry.GRPC
	fill := func() {
		if _, err := p.rest.routes.get(rest); err != nil {
			t.Fatal(err)
		}
		c, err := p.grpc.channels.get(grpc, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c.release()
	}
	for name, tc := range map[string]struct {
		keep       []registry.ClientConfig
		rest, grpc int
	}{
		"both":    {[]registry.ClientConfig{rest, grpc}, 1, 1},
		"REST":    {[]registry.ClientConfig{rest}, 1, 0},
		"gRPC":    {[]registry.ClientConfig{grpc}, 0, 1},
		"neither": {nil, 0, 0},
	} {
		fill()
		p.Retain(tc.keep)
		if n, m := len(*p.rest.routes.byKey.Load()), len(p.grpc.channels.byKey); n != tc.rest || m != tc.grpc {
			t.Errorf("%s: %d routes and %d channels are left, want %d and %d", name, n, m, tc.rest, tc.grpc)
		}
	}
}

// The last release ends what is counted, once, and nothing acquires it after that.
func TestReferences(t *testing.T) {
	var u refs
	var ends atomic.Int32
	u.init(func() { ends.Add(1) })
	var goroutines sync.WaitGroup
	for range 8 {
		goroutines.Go(func() {
			for range 1000 {
				if !u.acquire() {
					t.Error("not acquired while the first reference is held")
					return
				}
				u.release()
			}
		})
	}
	goroutines.Wait()
	if n := ends.Load(); n != 0 {
		t.Fatalf("ended %d times while the first reference is held", n)
	}
	u.release()
	if n := ends.Load(); n != 1 || u.acquire() {
		t.Errorf("ended %d times, want once and no reference afterwards", n)
	}
}
