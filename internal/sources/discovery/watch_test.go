// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// servers is a Discoverer and Observer whose servers are there, or not.
type servers struct {
	mu     sync.Mutex
	gone   map[string]bool // by URL
	hangs  bool            // probes take their time
	probes map[string]int
	fresh  int
	seen   map[string]error // by ExtensionConfig
	// connected are the clients that were probed since Retain was last called without them.
	connected map[string]bool
}

func (s *servers) Discover(context.Context, registry.ClientConfig) (extension.Discovered, error) {
	return extension.Discovered{}, nil
}

func (s *servers) Retain(clients []registry.ClientConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.connected, func(url string, _ bool) bool {
		return !slices.ContainsFunc(clients, func(c registry.ClientConfig) bool { return c.URL == url })
	})
}

func (*servers) Discovery(Attempt) {}

func (s *servers) Probe(ctx context.Context, client registry.ClientConfig, fresh bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes[client.URL]++
	if fresh {
		s.fresh++
	}
	if s.hangs {
		s.mu.Unlock()
		select {
		case <-time.After(limits.ProbeTimeout):
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.connected[client.URL] = true
		return true, errors.New("no answer")
	}
	if s.gone[client.URL] {
		return true, errors.New("connection refused")
	}
	return true, nil
}

func (s *servers) Server(extensionConfig, _ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[extensionConfig] = err
}

func (s *servers) Gone(name string) bool { return s.isGone(name) }

func (s *servers) set(url string, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[url] = gone
}

func (s *servers) forgetProbes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.probes)
}

func (s *servers) isGone(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name] != nil
}

// watch watches n extensions, each at a server of its own, until the test ends.
func watch(t *testing.T, n int) (*servers, *Reconciler, <-chan string) {
	t.Helper()
	s := &servers{gone: map[string]bool{}, probes: map[string]int{}, seen: map[string]error{}, connected: map[string]bool{}}
	r, err := NewReconciler(ReconcilerConfig{
		Registry: registry.New(), Discoverer: s, Observer: s, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := r.Reconcile(t.Context(), at(fmt.Sprintf("x%d", i), fmt.Sprintf("https://x%d.example/hooks", i))); err != nil {
			t.Fatal(err)
		}
	}
	back := make(chan string, 2*n)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, func(name string) { back <- name })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s, r, back
}

func at(name, url string) extensionconfig.Extension {
	return extensionconfig.Extension{Registration: registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: url}}}
}

// No outage of 3 s is missed, whenever it begins; it is seen within 5 s, and so is its end.
func TestWatchSeesShortOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, back := watch(t, 3)
		const url = "https://x1.example/hooks"
		for i := range 21 {
			time.Sleep(time.Duration(10_000+i*137) * time.Millisecond)
			s.set(url, true)
			time.Sleep(3 * time.Second)
			if synctest.Wait(); !s.isGone("x1") || s.isGone("x0") {
				t.Fatalf("outage %d was missed", i)
			}
			s.set(url, false)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if s.isGone("x1") {
				t.Fatalf("the end of outage %d was missed", i)
			}
			if got := <-back; got != "x1" || len(back) > 0 {
				t.Fatalf("outage %d: %s is back, and %d more", i, got, len(back))
			}
		}
	})
}

// However many servers there are, and however long they take, no more of them are looked for at a time than allowed.
func TestWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := watch(t, 2000)
		s.mu.Lock()
		s.hangs = true
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		total := 0
		for url, n := range s.probes {
			if total += n; n < 2 || n > 5 {
				t.Errorf("%s was looked for %d times in a minute, want about 3", url, n)
			}
		}
		if most := 61 * limits.ProbesPerSecond * 10 / 9; total > most || len(s.probes) != 2000 {
			t.Errorf("%d probes of %d servers in a minute, want at most %d", total, len(s.probes), most)
		}
	})
}

// Extensions of one server share its probes, whatever their paths; one that is paused or gone is left alone.
func TestWatchSharesServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, back := watch(t, 1)
		for _, x := range []string{"other", "paused"} {
			e := at(x, "https://x0.example/"+x)
			if e.Paused = x == "paused"; e.Paused {
				e.ClientConfig.URL = "https://paused.example"
			}
			if _, err := r.Reconcile(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		// The first turn may have begun before they were there.
		time.Sleep(2 * limits.ProbeInterval)
		s.forgetProbes()
		time.Sleep(10 * limits.ProbeInterval)
		s.mu.Lock()
		if len(s.probes) != 1 {
			t.Errorf("probes: %v", s.probes)
		}
		for url := range s.probes {
			s.gone[url] = true
		}
		s.mu.Unlock()
		time.Sleep(2 * limits.ProbeInterval)
		synctest.Wait()
		if !s.isGone("x0") || !s.isGone("other") || s.isGone("paused") {
			t.Errorf("seen: %v", s.seen)
		}
		r.Remove("x0")
		r.Remove("other")
		time.Sleep(2 * limits.ProbeInterval)
		s.forgetProbes()
		time.Sleep(2 * limits.ProbeInterval)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.probes) != 0 || len(back) != 0 {
			t.Errorf("what is gone is still looked for: %v", s.probes)
		}
	})
}

// A probe that is under way while the last ExtensionConfig of its server is removed leaves no connection behind.
func TestWatchLeavesNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, _ := watch(t, 2)
		s.mu.Lock()
		s.hangs = true
		s.mu.Unlock()
		time.Sleep(limits.ProbeInterval + limits.ProbeTimeout/2) // one of them is being probed
		r.Remove("x0")
		r.Remove("x1")
		time.Sleep(2 * limits.ProbeTimeout)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.probes["https://x0.example/hooks"]+s.probes["https://x1.example/hooks"] == 0 || len(s.connected) > 0 {
			t.Errorf("probes %v, left connected %v", s.probes, s.connected)
		}
	})
}
