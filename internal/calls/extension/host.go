// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

// host is a host as one ExtensionConfig sees it, which shares its connections with no other. These are in one pool,
// which is replaced when it has become too old or speaks the wrong protocol.
type host struct {
	config    *Config
	endpoint  *endpoint.Endpoint
	roots     *x509.CertPool
	inCluster bool
	partner   *partner

	http2      atomic.Bool // HTTP/2 is offered: the host has refused HTTP/1.1, or the Config prefers it
	knownHTTP1 atomic.Bool // the host has answered in HTTP/1.1
	answers    atomic.Bool // the host has answered
	// dials counts connections, so that each starts at another address of the host.
	dials   atomic.Uint32
	failing connect.Failing
	// dialing counts the connections that are being made, and lookingUp those that wait for the host's addresses.
	dialing, lookingUp atomic.Int32

	current atomic.Pointer[pool]
	mu      sync.Mutex // held to change current
	drained bool
}

func newHost(config *Config, e *endpoint.Endpoint, roots *x509.CertPool, cc registry.ClientConfig) *host {
	h := &host{
		config: config, endpoint: e, roots: roots, inCluster: cc.InCluster, partner: config.partners.of(e, cc.CABundle),
	}
	h.http2.Store(config.PreferHTTP2)
	return h
}

// clientTLS returns the configuration of the host's connections.
func (h *host) clientTLS() *tls.Config { return h.config.clientTLS(h.roots, h.partner) }

// acquire returns a pool to send one request with, which the caller must release.
func (h *host) acquire(now time.Time) *pool {
	for {
		p := h.current.Load()
		if p != nil && now.Before(p.expires) && p.http2 == h.http2.Load() && p.acquire() {
			return p
		}
		if p = h.renew(p, now); p != nil {
			return p
		}
	}
}

// renew replaces old and returns its successor, acquired. It returns nil if another call has replaced old.
func (h *host) renew(old *pool, now time.Time) *pool {
	h.mu.Lock()
	if h.current.Load() != old {
		h.mu.Unlock()
		return nil
	}
	p := newPool(h, now.Add(h.config.MaxConnectionAge))
	if h.drained {
		// A call that got here just before the host was given up: it is served, and its connection closes with it.
		h.mu.Unlock()
		return p
	}
	p.acquire() // for the host, until the pool is retired
	h.current.Store(p)
	h.mu.Unlock()
	if old != nil {
		old.retire() // without the lock: closing connections is I/O
	}
	return p
}

// drain closes the connections of the host, those in use as soon as their calls have ended.
func (h *host) drain() {
	h.mu.Lock()
	h.drained = true
	p := h.current.Swap(nil)
	h.mu.Unlock()
	if p != nil {
		p.retire()
	}
}

// refusedHTTP1 records that the host has refused p's protocol, and reports whether another one is left to try.
func (h *host) refusedHTTP1(p *pool) bool {
	if p.http2 {
		return false
	}
	h.http2.Store(true)
	return true
}

// answered records that the host has answered a request of p.
func (h *host) answered(p *pool) {
	if !h.answers.Load() { // most calls only look
		h.answers.Store(true)
	}
	if !p.http2 && !h.knownHTTP1.Load() {
		h.knownHTTP1.Store(true)
	}
}

// proxy chooses the proxy for a request. Services of the cluster are never behind one.
func (h *host) proxy() func(*http.Request) (*url.URL, error) {
	if h.inCluster {
		return nil
	}
	return func(r *http.Request) (*url.URL, error) {
		if isService(r.URL.Hostname()) {
			return nil, nil
		}
		proxy, err := h.config.Proxy(r)
		if proxy != nil && err == nil {
			err = h.config.Allowed.Host(r.URL.Hostname()) // the proxy would make the connection
		}
		return proxy, err
	}
}

// isPlain reports whether http1 can call the host: without a proxy, and by a name that goes into a header as it is.
func (h *host) isPlain() bool {
	for _, c := range []byte(h.endpoint.Authority) {
		if c >= utf8.RuneSelf || c == '%' {
			return false
		}
	}
	if !httpguts.ValidHostHeader(h.endpoint.Authority) {
		return false
	}
	choose := h.proxy()
	if choose == nil {
		return true
	}
	proxy, err := choose(&http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: endpoint.HTTPS, Host: h.endpoint.Authority},
	})
	return proxy == nil && err == nil
}

// isService reports whether a host is a Service of the cluster, by its name.
func isService(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// dial connects to addr, which is the host's or its proxy's.
func (h *host) dial(ctx context.Context, addr string) (net.Conn, error) {
	h.dialing.Add(1)
	defer h.dialing.Add(-1)
	return connect.Dial(ctx, h.lookup, h.config.Allowed, &h.failing, addr, h.dials.Add(1)-1)
}

// lookup is a connect.Lookup.
func (h *host) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	h.lookingUp.Add(1)
	defer h.lookingUp.Add(-1)
	return h.config.LookupHost(ctx, name)
}

// unresolved returns the error of the lookup for which a request whose time is over, and ended with err, has had no
// connection; nil if it had none for another reason. Connections are made for all requests: one that waits for a server
// that does not answer shows that the host has an address.
func (h *host) unresolved(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns
	}
	if n := h.dialing.Load(); n > 0 && n == h.lookingUp.Load() {
		return connect.Unresolved(h.endpoint.Host)
	}
	return nil
}
