// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// target is a host as one ClientConfig sees it: the extensions that it serves share its connections. The connections of
// a target are in one pool, which another one replaces when it has become too old or speaks the wrong protocol.
type target struct {
	config    *Config
	roots     *x509.CertPool
	inCluster bool

	// http2 is remembered once the host has refused HTTP/1.1.
	http2 atomic.Bool
	// speaksHTTP1 is remembered once the host has answered in it.
	speaksHTTP1 atomic.Bool
	// speaks is remembered once the host has answered at all.
	speaks atomic.Bool
	// dials counts connections, so that each starts at another address of the host.
	dials atomic.Uint32

	current atomic.Pointer[pool]
	mu      sync.Mutex // held to change current
	drained bool
}

func newTarget(config *Config, roots *x509.CertPool, inCluster bool) *target {
	t := &target{config: config, roots: roots, inCluster: inCluster}
	t.http2.Store(config.PreferHTTP2)
	return t
}

// acquire returns a pool to send one request with. It must be released.
func (t *target) acquire(now time.Time) *pool {
	for {
		p := t.current.Load()
		if p != nil && now.Before(p.expires) && p.http2 == t.http2.Load() && p.acquire() {
			return p
		}
		if p = t.renew(p, now); p != nil {
			return p
		}
	}
}

// renew replaces old, and returns its successor, acquired. It returns nil if somebody else has replaced it.
func (t *target) renew(old *pool, now time.Time) *pool {
	t.mu.Lock()
	if t.current.Load() != old {
		t.mu.Unlock()
		return nil
	}
	p := newPool(t, now.Add(t.config.MaxConnectionAge))
	if t.drained {
		// A call that found its way here just before: it is served, and its connection closes with it.
		t.mu.Unlock()
		return p
	}
	p.acquire() // for the target, until the pool is retired
	t.current.Store(p)
	t.mu.Unlock()
	if old != nil {
		old.retire() // without the lock: to close connections is I/O
	}
	return p
}

// drain makes the target close its connections, those in use as soon as their calls are done.
func (t *target) drain() {
	t.mu.Lock()
	t.drained = true
	p := t.current.Swap(nil)
	t.mu.Unlock()
	if p != nil {
		p.retire()
	}
}

// refusedHTTP1 remembers that the host has refused p's protocol, and tells whether another one is left to try.
func (t *target) refusedHTTP1(p *pool) bool {
	if p.http2 {
		return false
	}
	t.http2.Store(true)
	return true
}

// answered remembers that the host has answered a request of p.
func (t *target) answered(p *pool) {
	if !t.speaks.Load() { // most calls only look
		t.speaks.Store(true)
	}
	if !p.http2 && !t.speaksHTTP1.Load() {
		t.speaksHTTP1.Store(true)
	}
}

// proxy chooses the proxy for a request. Services of the cluster are never behind one.
func (t *target) proxy() func(*http.Request) (*url.URL, error) {
	if t.inCluster {
		return nil
	}
	return t.config.Proxy
}

// dial connects a pool to addr, which is the host's or its proxy's.
func (t *target) dial(ctx context.Context, addr string) (*connection, error) {
	return dial(ctx, t.config.LookupHost, addr, t.dials.Add(1)-1)
}
