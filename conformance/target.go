// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// TargetError reports a Target that cannot be used.
type TargetError struct {
	URL     string
	Problem string
}

// Error returns the URL and its problem.
func (e *TargetError) Error() string { return fmt.Sprintf("URL %q: %s", redact.URL(e.URL), e.Problem) }

// ConnectError reports why there was nothing to check.
type ConnectError struct {
	URL     string
	Problem string
	Hint    string // what to do about it; may be empty
	Err     error  // may be nil
}

// Error returns the problem, and the hint on a line of its own.
func (e *ConnectError) Error() string {
	text := fmt.Sprintf("extension %s: %s", e.URL, e.Problem)
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// target is a checked Target.
type target struct {
	*endpoint.Endpoint
	url         string
	protocol    Protocol
	roots       *x509.CertPool // nil means the system's
	certificate *tls.Certificate
	token       string
	now         func() time.Time
	shortest    time.Duration
}

func newTarget(t Target) (*target, error) {
	bad := func(problem string) (*target, error) { return nil, &TargetError{URL: t.URL, Problem: problem} }
	e, err := endpoint.Parse(t.URL, endpoint.HTTPS, endpoint.HTTP, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return bad(err.Error())
	}
	switch {
	case e.IsGRPC() && e.Network == "tcp" && e.Port == "":
		return bad("must have a port")
	case !e.HasTLS() && !e.IsLocal():
		return bad(fmt.Sprintf("must be on loopback, because %[1]s:// has no TLS; use %[1]ss://%[2]s", e.Scheme, e.Authority))
	case !e.HasTLS() && len(t.CA) > 0:
		return bad("there is no TLS, so a CA has no effect")
	}
	checked := &target{
		Endpoint: e, url: strings.TrimSuffix(t.URL, "/"), protocol: REST, certificate: t.Certificate, token: t.Token,
		now: t.now, shortest: cmp.Or(t.shortest, time.Millisecond),
	}
	if t.now == nil {
		checked.now = time.Now
	}
	if e.IsGRPC() {
		checked.protocol = GRPC
	}
	if len(t.CA) > 0 {
		checked.roots = x509.NewCertPool()
		if !checked.roots.AppendCertsFromPEM(t.CA) {
			return bad("the CA has no certificate in PEM")
		}
	}
	return checked, nil
}

// dialTimeout bounds an attempt to connect, with TLS.
const dialTimeout = 10 * time.Second

func (t *target) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, t.Network, t.Address)
}

// tlsConfig returns the configuration that Cluster API's client would use.
func (t *target) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.roots, ServerName: t.Host}
	if t.IsGRPC() {
		config.NextProtos = []string{"h2"}
	}
	if t.certificate != nil {
		config.Certificates = []tls.Certificate{*t.certificate}
	}
	return config
}

// handshake connects and returns the negotiated state.
func (t *target) handshake(ctx context.Context, config *tls.Config) (tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := t.dial(ctx)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer raw.Close()
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, err
	}
	return c.ConnectionState(), nil
}

// connectError returns the reason of a failed connection, with a hint.
func (t *target) connectError(err error) *ConnectError {
	classify := connect.Classify
	if t.IsGRPC() {
		classify = connect.ClassifyGRPC
	}
	f := classify(err)
	return &ConnectError{URL: t.url, Problem: f.Text, Hint: options.Hint(t.Endpoint, f), Err: f.Cause}
}

// options names the fields of a Target and the flags of the command in hints.
var options = client.Options{
	CA: "--ca FILE, or Target.CA", Certificate: "--cert FILE and --key FILE, or Target.Certificate",
}
