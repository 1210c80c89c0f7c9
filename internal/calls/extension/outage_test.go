// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// away is a host whose server is there only now and then.
type away struct {
	back    atomic.Bool
	lookups atomic.Int32
}

// lookup is a connect.Lookup. Nothing listens on 127.0.0.9.
func (a *away) lookup(context.Context, string) ([]netip.Addr, error) {
	a.lookups.Add(1)
	if a.back.Load() {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.9")}, nil
}

// Calls that have begun while an extension is away are made once it is back, each once.
func TestCallsWaitForARestart(t *testing.T) {
	const calls = 8
	var requests atomic.Int32
	begin := func(t *testing.T, caller Caller, cc registry.ClientConfig) (wait func()) {
		requests.Store(0)
		var group errgroup.Group
		for range calls {
			group.Go(func() error {
				result, err := caller(t.Context(), newCall(cc))
				if !result.Waited {
					t.Errorf("a call did not wait: %v", err)
				}
				return err
			})
		}
		return func() {
			t.Helper()
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
			if n := requests.Load(); n != calls {
				t.Errorf("%d requests, want %d", n, calls)
			}
		}
	}
	t.Run("REST", func(t *testing.T) {
		s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
			requests.Add(1)
			answer(success)(w, req)
		}, nil)
		var host away
		r := newREST(t, Config{LookupHost: host.lookup, RestartWait: patience})
		cc := atHost(s.cc, "localhost")
		wait := begin(t, r.Call, cc)
		process.Eventually(t, "all calls were refused", func() bool { return host.lookups.Load() >= calls })
		host.back.Store(true)
		wait()
	})
	t.Run("gRPC", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "extension.sock")
		g := newGRPC(t, Config{RestartWait: patience})
		cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "unix://" + socket}
		wait := begin(t, g.Call, cc)
		channel, err := g.channels.get(cc, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer channel.release()
		process.Eventually(t, "a call was refused", func() bool { return channel.outage.current.Load() != nil })
		serveGRPC(t, listen(t, "unix", socket), &author{
			create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				requests.Add(1)
				return &hooksv1alpha1.BeforeClusterCreateResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
			},
		}, nil)
		wait()
	})
}

// Calls to an extension that stays away wait together, once: afterwards, each makes one attempt, until a probe connects.
func TestCallsWaitOnceForAnOutage(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var host away
	r := newREST(t, Config{LookupHost: host.lookup, RestartWait: 300 * time.Millisecond})
	cc := atHost(s.cc, "localhost")
	refused := func() (waited bool, attempts int32) {
		t.Helper()
		before := host.lookups.Load()
		result, err := r.Call(t.Context(), newCall(cc))
		if hook.KindOf(err) != hook.Unreachable || result.Connected {
			t.Fatalf("got %v, want Unreachable", err)
		}
		return result.Waited, host.lookups.Load() - before
	}
	for waited := true; waited; { // a call that begins late in the outage may still wait
		waited, _ = refused()
	}
	if waited, n := refused(); waited || n != 1 {
		t.Errorf("a call after the wait: %d attempts, want 1", n)
	}
	host.back.Store(true)
	if _, err := r.Probe(t.Context(), cc, true); err != nil {
		t.Fatal(err)
	}
	host.back.Store(false)
	s.CloseClientConnections()
	if waited, n := refused(); !waited || n < 2 {
		t.Errorf("the first call of another outage: %d attempts, want several", n)
	}
}

// A call that has little time left does not wait, so that its caller learns why it failed.
func TestShortCallsDoNotWait(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var host away
	r := newREST(t, Config{LookupHost: host.lookup, RestartWait: patience})
	c := newCall(atHost(s.cc, "localhost"))
	entry := *c.Handler
	entry.Handler.Timeout, c.Handler = 70*time.Millisecond, &entry
	result, err := r.Call(t.Context(), c)
	if kind := hook.KindOf(err); result.Waited || kind != hook.Unreachable && kind != hook.Timeout {
		t.Errorf("got %v after waiting %t, want Unreachable at once", err, result.Waited)
	}
	if n := host.lookups.Load(); n > 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}
