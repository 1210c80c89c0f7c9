// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/registry"
)

// route is where one ClientConfig leads: a target, and a prefix of all paths there. It is immutable.
type route struct {
	target *target
	host   string // with the port, if the URL has one
	prefix string // empty, or begins with a slash and does not end with one
}

// routeKey is a registry.ClientConfig as a value.
type routeKey struct {
	url       string
	caBundle  string
	inCluster bool
}

func keyOf(cc registry.ClientConfig) routeKey {
	return routeKey{url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster}
}

// targetKey is what extensions must have in common to share connections.
type targetKey struct {
	host      string
	caBundle  string
	inCluster bool
}

// routes holds the routes in use. Lookups take no lock and copy nothing.
type routes struct {
	config *Config

	mu      sync.Mutex // held to change what is below
	byKey   atomic.Pointer[map[routeKey]*route]
	targets map[targetKey]*target
}

// get returns the route of cc, which it makes if there is none. It does no I/O.
func (rs *routes) get(cc registry.ClientConfig) (*route, error) {
	if known := rs.byKey.Load(); known != nil {
		// The compiler turns []byte into string for a lookup without a copy, but only in this form.
		if rt, ok := (*known)[routeKey{url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster}]; ok {
			return rt, nil
		}
	}
	return rs.add(cc)
}

func (rs *routes) add(cc registry.ClientConfig) (*route, error) {
	u, roots, err := parse(cc)
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

	shared := targetKey{host: u.Host, caBundle: key.caBundle, inCluster: key.inCluster}
	t, ok := rs.targets[shared]
	if !ok {
		t = newTarget(rs.config, roots, cc.InCluster)
		if rs.targets == nil {
			rs.targets = map[targetKey]*target{}
		}
		rs.targets[shared] = t
	}
	rt := &route{target: t, host: u.Host, prefix: prefix(u)}
	next[key] = rt
	rs.byKey.Store(&next)
	return rt, nil
}

// retain forgets the routes that are not to one of ccs, and drains the targets that no route leads to any more.
func (rs *routes) retain(ccs []registry.ClientConfig) {
	for _, t := range rs.forget(ccs) {
		t.drain() // without the lock: to close connections is I/O
	}
}

// forget returns the targets that are not needed for ccs, and that nobody will find any more.
func (rs *routes) forget(ccs []registry.ClientConfig) []*target {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.byKey.Load()
	if known == nil {
		return nil
	}
	next := make(map[routeKey]*route, len(ccs))
	used := map[*target]bool{}
	for _, cc := range ccs {
		key := keyOf(cc)
		if rt, ok := (*known)[key]; ok {
			next[key] = rt
			used[rt.target] = true
		}
	}
	rs.byKey.Store(&next)
	var unused []*target
	for key, t := range rs.targets {
		if !used[t] {
			delete(rs.targets, key)
			unused = append(unused, t)
		}
	}
	return unused
}

// parse checks a ClientConfig. The pool is nil where the system's roots are meant.
func parse(cc registry.ClientConfig) (*url.URL, *x509.CertPool, error) {
	if err := cc.CheckURL(); err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	u, err := url.Parse(cc.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	if len(cc.CABundle) == 0 {
		return u, nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cc.CABundle) {
		return nil, nil, errors.New("caBundle: no valid certificate in PEM in it")
	}
	return u, roots, nil
}

// prefix returns the path of an extension's URL in the form that a hook's path can be appended to.
func prefix(u *url.URL) string {
	p := path.Join("/", u.Path)
	if p == "/" {
		return ""
	}
	return p
}
