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
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/internal/body"
	"github.com/hookgate/hookgate/registry"
)

const (
	defaultMaxBytes         = 20 << 20
	defaultMaxConnectionAge = 10 * time.Minute
)

// Config says how extensions are called. The zero value is complete; none of it can be changed afterwards.
type Config struct {
	// Catalog is the hooks that exist. Nil means catalog.New().
	Catalog *catalog.Catalog
	// Codec reads, writes and checks the JSON. Nil means codec.New(Catalog).
	Codec *codec.Codec
	// MaxBytes bounds each body or message, that of an answer before and after decompression. 0 means 20 MiB.
	MaxBytes int64
	// PreferHTTP2 offers HTTP/2 to every extension that speaks JSON. Otherwise only those that refuse HTTP/1.1 get it, because HTTP/1.1
	// with kept connections is the faster way.
	PreferHTTP2 bool
	// MaxConnectionAge is for how long new calls use a connection: after that they get new ones, which see new
	// certificates, addresses and endpoints. 0 means 10 minutes.
	MaxConnectionAge time.Duration
	// Proxy chooses the proxy for JSON, but never for extensions in the cluster. Nil means http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// LookupHost returns the addresses of a host name. Nil means the system's resolver.
	LookupHost func(ctx context.Context, host string) ([]netip.Addr, error)
	// Endpoints knows where the endpoints of Services are. Nil means that Services are called at their own addresses.
	Endpoints Endpoints
	// ClientCertificate returns the certificate for extensions that ask for one. Nil means none.
	ClientCertificate func() (*tls.Certificate, error)
	// Propagator puts the trace context into the headers or the metadata of a request. Nil means none.
	Propagator propagation.TextMapPropagator
}

// clientTLS returns how connections with TLS are made; nil roots are the system's.
func (c *Config) clientTLS(roots *x509.CertPool) *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    roots,
		// Small records at the start of a connection would cost a system call each.
		DynamicRecordSizingDisabled: true,
	}
	if c.ClientCertificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.ClientCertificate() }
	}
	return config
}

func (c *Config) setDefaults() {
	if c.Catalog == nil {
		c.Catalog = catalog.New()
	}
	if c.Codec == nil {
		c.Codec = codec.New(c.Catalog)
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxConnectionAge == 0 {
		c.MaxConnectionAge = defaultMaxConnectionAge
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

// REST calls extensions that speak JSON over HTTPS. It is safe for concurrent use.
type REST struct {
	config Config
	routes routes
	bodies body.Reader
	now    func() time.Time
}

// NewREST returns a REST without connections.
func NewREST(config Config) *REST {
	config.setDefaults()
	r := &REST{config: config, bodies: body.Reader{Max: config.MaxBytes, Pool: &body.Pool{}, Keep: true}, now: time.Now}
	r.routes.config = &r.config
	return r
}

// Call sends the request to the handler and returns its answer, a fresh message whose status is Success or Failure. It
// returns when ctx ends, or the handler's timeout if ctx has no deadline.
//
// An error is a *hook.Error that names the handler:
//   - InvalidRequest, TooLarge: the request cannot be sent
//   - Unreachable: no connection, or one that broke before an answer began
//   - BadResponse: an answer that is not one, or that ended early
//   - Timeout, Canceled: ctx ended
//   - Internal: a request that is not a message of the catalog
//
// A request that cannot have reached the extension, because there was no connection or a kept one had been closed, is
// sent once more.
func (r *REST) Call(ctx context.Context, c Call) (Result, error) {
	x := &exchange{errand: errandOf(c), handler: c.Handler.Handler.Name, body: c.Body}
	answer, err := r.exchange(ctx, c.Handler.Registration.ClientConfig, x, c.Request)
	result := Result{Response: answer, Sent: x.sent, Received: x.received}
	if err != nil {
		return result, err.WithHandler(c.Handler.Name)
	}
	return result, nil
}

// Retain keeps the connections to the given extensions and gives up all others: calls that are under way finish, and
// then their connections close. It is called after registrations have changed.
func (r *REST) Retain(ccs []registry.ClientConfig) { r.routes.retain(ccs) }

// Close gives up all connections, as Retain does without extensions. It does not wait for calls that are under way.
func (r *REST) Close() { r.routes.retain(nil) }
