// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

// route is where one ClientConfig leads: a host, and a prefix of all paths there. Its budget and its outage change.
type route struct {
	budget    retryBudget
	outage    outage
	host      *host
	authority string // with the port, if the URL has one
	prefix    string // empty, or begins with a slash and does not end with one
}

// routeKey is a registry.ClientConfig as a value.
type routeKey struct {
	owner     string
	url       string
	caBundle  string
	inCluster bool
}

func keyOf(cc registry.ClientConfig) routeKey {
	return routeKey{owner: cc.Owner, url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster}
}

// hostKey is what the ClientConfigs of an extension must have in common to share connections.
type hostKey struct {
	owner     string
	authority string
	caBundle  string
	inCluster bool
}

// routes holds the routes in use. Lookups take no lock and copy nothing.
type routes struct {
	config *Config

	mu    sync.Mutex // held to change what is below
	byKey atomic.Pointer[map[routeKey]*route]
	hosts map[hostKey]*host
}

// get returns the route of cc, which it makes if there is none. It does no I/O.
func (rs *routes) get(cc registry.ClientConfig) (*route, error) {
	if known := rs.byKey.Load(); known != nil {
		// The compiler turns []byte into string for a lookup without a copy, but only in this form.
		rt, ok := (*known)[routeKey{
			owner: cc.Owner, url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster,
		}]
		if ok {
			return rt, nil
		}
	}
	return rs.add(cc)
}

func (rs *routes) add(cc registry.ClientConfig) (*route, error) {
	e, roots, err := parse(cc)
	if err != nil {
		return nil, err
	}

	rs.mu.Lock()
	defer rs.mu.Unlock()
	next := map[routeKey]*route{}
	if known := rs.byKey.Load(); known != nil {
		next = maps.Clone(*known)
	}
	key := keyOf(cc)
	if rt, ok := next[key]; ok {
		return rt, nil
	}

	shared := hostKey{owner: key.owner, authority: e.Authority, caBundle: key.caBundle, inCluster: key.inCluster}
	h, ok := rs.hosts[shared]
	if !ok {
		h = newHost(rs.config, e, roots, cc)
		if rs.hosts == nil {
			rs.hosts = map[hostKey]*host{}
		}
		rs.hosts[shared] = h
	}
	rt := &route{host: h, authority: e.Authority, prefix: e.Prefix}
	next[key] = rt
	rs.byKey.Store(&next)
	return rt, nil
}

// retain removes the routes that lead to none of ccs, and drains the hosts that no route leads to any more.
func (rs *routes) retain(ccs []registry.ClientConfig) {
	for _, h := range rs.remove(ccs) {
		h.drain() // without the lock: closing connections is I/O
	}
}

// remove removes the routes that lead to none of ccs, and returns the hosts that no route leads to any more.
func (rs *routes) remove(ccs []registry.ClientConfig) []*host {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.byKey.Load()
	if known == nil {
		return nil
	}
	next := make(map[routeKey]*route, len(ccs))
	used := map[*host]bool{}
	for _, cc := range ccs {
		key := keyOf(cc)
		if rt, ok := (*known)[key]; ok {
			next[key] = rt
			used[rt.host] = true
		}
	}
	rs.byKey.Store(&next)
	var unused []*host
	for key, h := range rs.hosts {
		if !used[h] {
			delete(rs.hosts, key)
			unused = append(unused, h)
		}
	}
	return unused
}

// parse checks a ClientConfig. Without a caBundle, the pool is nil, which means the system's roots.
func parse(cc registry.ClientConfig) (*endpoint.Endpoint, *x509.CertPool, error) {
	if err := cc.CheckURL(); err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	e, err := endpoint.Parse(cc.URL, endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	if len(cc.CABundle) == 0 {
		return e, nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cc.CABundle) {
		return nil, nil, errors.New("caBundle: contains no valid PEM certificate")
	}
	return e, roots, nil
}
