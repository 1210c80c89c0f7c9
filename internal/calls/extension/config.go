// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/overhead"
	"github.com/hookgate/hookgate/internal/network/via"
)

const defaultMaxConnectionAge = limits.DefaultConnectionAge

// Config describes how extensions are called. Catalog and Codec are required. A Config must not change afterwards.
type Config struct {
	// Catalog holds the hooks that exist.
	Catalog *catalog.Catalog
	// Codec reads, writes and checks the JSON.
	Codec *codec.Codec
	// BodyBytes bounds each body or message, an answer before and after its decompression. 0 means 20 MiB.
	BodyBytes int64
	// Memory bounds what answers to discovery take; a Call brings its own. Nil bounds nothing.
	Memory *budget.Budget
	// PreferHTTP2 offers HTTP/2 to every extension that speaks JSON. By default, only those that refuse HTTP/1.1 are
	// called with it, because HTTP/1.1 with kept connections is faster.
	PreferHTTP2 bool
	// MaxConnectionAge is how long new calls use a connection. After that they get new ones, which see new
	// certificates, addresses and endpoints. 0 means 10 minutes.
	MaxConnectionAge time.Duration
	// MaxIdleConnections is how many idle connections to a host are kept, so that as many calls at the same time need no
	// handshake. 0 means limits.IdleConnections.
	MaxIdleConnections int
	// RestartWait is how long calls wait for an extension that takes no connections, all together from the first that had
	// none. 0 means limits.RestartWait.
	RestartWait time.Duration
	// Proxy chooses the proxy for JSON, but never for extensions in the cluster. Nil means http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Allowed are the hosts that may be called; a proxy, too, must be one of them. Nil means all.
	Allowed *connect.Allowed
	// LookupHost returns the addresses of a host name. Nil means the system's resolver.
	LookupHost connect.Lookup
	// Endpoints knows the endpoints of Services. Nil means that Services are called at their own addresses.
	Endpoints Endpoints
	// ClientCertificate returns the certificate for extensions that ask for one. Nil means none.
	ClientCertificate func() (*tls.Certificate, error)
	// Propagator puts the trace context into the headers or the metadata of a request. Nil means none.
	Propagator propagation.TextMapPropagator
	// Gateway is the id of the gateway that calls. It makes the gateway recognize its own requests for discovery.
	// Empty means that they do not say where they come from.
	Gateway string

	partners *partners        // the certificates of extensions
	bucket   *overhead.Bucket // of what extensions over HTTP/2 and gRPC send besides their answers
}

// discoveryVia returns the way of requests for discovery.
func (c *Config) discoveryVia() via.Way {
	if c.Gateway == "" {
		return ""
	}
	return via.Way("").Next(c.Gateway, "")
}

// clientTLS returns the configuration of connections with TLS to a partner. Nil roots are the system's.
func (c *Config) clientTLS(roots *x509.CertPool, p *partner) *tls.Config {
	config := &tls.Config{
		MinVersion:       tls.VersionTLS12,
		RootCAs:          roots,
		VerifyConnection: p.verified,
		// Small records at the start of a connection would cost a system call each.
		DynamicRecordSizingDisabled: true,
	}
	if c.ClientCertificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.ClientCertificate()
		}
	}
	return config
}

func (c *Config) setDefaults() {
	if c.partners == nil {
		c.partners = &partners{}
	}
	if c.bucket == nil {
		c.bucket = overhead.NewBucket(limits.OverheadBytes)
	}
	if c.BodyBytes == 0 {
		c.BodyBytes = limits.BodyBytes
	}
	if c.MaxConnectionAge == 0 {
		c.MaxConnectionAge = defaultMaxConnectionAge
	}
	if c.MaxIdleConnections == 0 {
		c.MaxIdleConnections = limits.IdleConnections
	}
	if c.RestartWait == 0 {
		c.RestartWait = limits.RestartWait
	}
	if c.Proxy == nil {
		c.Proxy = http.ProxyFromEnvironment
	}
	if c.LookupHost == nil {
		c.LookupHost = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
}
