// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// Prober is a Discoverer that can look for the server of an extension without calling it.
type Prober interface {
	// Probe reports whether it has seen anything new; err is nil if the server is there. It connects anew if fresh is
	// set.
	Probe(ctx context.Context, client registry.ClientConfig, fresh bool) (looked bool, err error)
}

// ServerObserver is an Observer that wants to know whether the servers of extensions are there.
type ServerObserver interface {
	// Server records that the server of an extension is there, or with an error that it is not.
	Server(extensionConfig, url string, err error)
	// Gone reports whether the server was not there when it was seen last, by whatever was sent to it.
	Gone(extensionConfig string) bool
}

// server is where extensions are called: those of one address share it, whatever their paths.
type server struct {
	address   string
	protocol  registry.Protocol
	caBundle  string
	inCluster bool
}

func serverOf(c *registry.ClientConfig) server {
	s := server{address: c.URL, protocol: c.Protocol, caBundle: string(c.CABundle), inCluster: c.InCluster}
	if u, err := url.Parse(c.URL); err == nil && u.Host != "" {
		s.address = u.Scheme + "://" + u.Host
	}
	return s
}

// watched is a server as it is looked for in one turn.
type watched struct {
	client registry.ClientConfig
	names  []string // of the ExtensionConfigs that it serves
	urls   []string // theirs
	*seen
}

// seen is what is kept of a server from one turn to the next.
type seen struct {
	busy atomic.Bool // it is being looked for
	gone atomic.Bool // it was not there when it was looked for last
}

// Watch looks for the servers of all extensions every limits.ProbeInterval, or as often as limits.ProbesPerSecond
// allows for all of them together, until ctx is done. It tells the Observer, and calls back with the ExtensionConfigs
// whose server is there again, which are to be discovered at once. It does nothing if the Discoverer is no Prober.
func (r *Reconciler) Watch(ctx context.Context, back func(extensionConfig string)) {
	prober, ok := r.discoverer.(Prober)
	if !ok {
		return
	}
	var probes sync.WaitGroup
	defer probes.Wait()
	known := map[server]*seen{}
	for {
		var turn []watched
		turn, known = r.servers(known)
		pause := max(limits.ProbeInterval/time.Duration(max(1, len(turn))), time.Second/limits.ProbesPerSecond)
		if len(turn) == 0 && !sleep(ctx, pause) {
			return
		}
		for i := range turn {
			// The replicas of a gateway do not look at the same time.
			if !sleep(ctx, pause*9/10+rand.N(pause/5)) { //nolint:gosec // it only spreads them
				return
			}
			if w := &turn[i]; w.busy.CompareAndSwap(false, true) {
				probes.Go(func() {
					defer w.busy.Store(false)
					r.look(ctx, prober, w, back)
				})
			}
		}
	}
}

// look looks for one server.
func (r *Reconciler) look(ctx context.Context, prober Prober, w *watched, back func(extensionConfig string)) {
	was := w.gone.Load()
	release, ok := r.holdWatched(w)
	if !ok {
		return // removed since the turn began
	}
	defer release()
	observer, _ := r.observer.(ServerObserver)
	// An idle connection does not prove that a server is back.
	fresh := was || observer != nil && slices.ContainsFunc(w.names, observer.Gone)
	looked, err := prober.Probe(ctx, w.client, fresh)
	if ctx.Err() != nil || !looked {
		return
	}
	w.gone.Store(err != nil)
	for i, name := range w.names {
		if observer != nil {
			observer.Server(name, w.urls[i], err)
		}
		if was && err == nil {
			back(name)
		}
	}
}

// holdWatched keeps the connections of a server until release is called. It reports whether one of its ExtensionConfigs
// is still to be looked for: a probe of another would make connections that nothing ends.
func (r *Reconciler) holdWatched(w *watched) (release func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(w.names, func(name string) bool {
		s := r.states[name]
		return s != nil && s.wanted != nil && !s.unwatched
	}) {
		return nil, false
	}
	return r.hold(&w.client), true
}

// servers returns the servers to look for, in the order of their addresses, with what is known of them.
func (r *Reconciler) servers(known map[server]*seen) (turn []watched, now map[server]*seen) {
	now = map[server]*seen{}
	byServer := map[server]*watched{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.states)) {
		s := r.states[name]
		if s.wanted == nil || s.unwatched {
			continue
		}
		key := serverOf(s.wanted)
		w := byServer[key]
		if w == nil {
			w = &watched{client: *s.wanted, seen: cmp.Or(known[key], &seen{})}
			byServer[key], now[key] = w, w.seen
		}
		w.names, w.urls = append(w.names, name), append(w.urls, s.wanted.URL)
	}
	for _, key := range slices.SortedFunc(maps.Keys(byServer), func(a, b server) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.caBundle, b.caBundle))
	}) {
		turn = append(turn, *byServer[key])
	}
	return turn, now
}

// sleep reports whether ctx is not done after d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
