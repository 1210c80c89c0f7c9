// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// TargetError is a Target that cannot be used.
type TargetError struct {
	URL     string
	Problem string
}

// Error says what is wrong with the target.
func (e *TargetError) Error() string { return fmt.Sprintf("URL %q: %s", e.URL, e.Problem) }

// ConnectError says why there was nothing to check.
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

// endpoint is a checked Target.
type endpoint struct {
	url      string
	protocol Protocol
	secure   bool
	network  string // "tcp" or "unix"
	address  string // host:port, or the path of a socket
	host     string // the name that a certificate must be for
	prefix   string // path in front of the hooks', without a slash at the end; REST only

	roots       *x509.CertPool // nil means the system's
	certificate *tls.Certificate
}

func newEndpoint(t Target) (*endpoint, error) {
	bad := func(format string, args ...any) (*endpoint, error) {
		return nil, &TargetError{URL: t.URL, Problem: fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return bad("want https://HOST:PORT, grpcs://HOST:PORT, grpc://HOST:PORT or unix:///PATH")
	}
	e := &endpoint{url: strings.TrimSuffix(t.URL, "/"), protocol: GRPC, network: "tcp", address: u.Host, host: u.Hostname(), certificate: t.Certificate}
	switch u.Scheme {
	case "https", "http":
		e.protocol, e.secure, e.prefix = REST, u.Scheme == "https", strings.TrimSuffix(u.EscapedPath(), "/")
	case "grpcs", "grpc":
		e.secure = u.Scheme == "grpcs"
		if strings.TrimSuffix(u.Path, "/") != "" {
			return bad("gRPC has no path")
		}
	case "unix":
		e.network, e.address, e.host = "unix", u.Path, "localhost"
		if u.Host != "" || u.Path == "" {
			return bad("want three slashes, as in unix:///run/extension.sock")
		}
	default:
		return bad("unknown scheme %q; want https://, grpcs://, grpc:// or unix://", u.Scheme)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("want no user, query or fragment")
	}
	if e.network == "unix" {
		return e.withCA(t)
	}
	switch {
	case e.host == "":
		return bad("the host is missing")
	case u.Port() == "" && e.protocol == GRPC:
		return bad("the port is missing")
	case u.Port() == "" && e.secure:
		e.address = net.JoinHostPort(e.host, "443")
	case u.Port() == "":
		e.address = net.JoinHostPort(e.host, "80")
	}
	if !e.secure && !isLoopback(e.host) {
		return bad("without TLS only an extension on loopback is called; want %ss://%s", u.Scheme, u.Host)
	}
	return e.withCA(t)
}

func (e *endpoint) withCA(t Target) (*endpoint, error) {
	if len(t.CA) == 0 {
		return e, nil
	}
	if !e.secure {
		return nil, &TargetError{URL: t.URL, Problem: "there is no TLS, so a CA is of no use"}
	}
	e.roots = x509.NewCertPool()
	if !e.roots.AppendCertsFromPEM(t.CA) {
		return nil, &TargetError{URL: t.URL, Problem: "the CA has no certificate in PEM"}
	}
	return e, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// dialTimeout bounds one attempt to connect, with TLS.
const dialTimeout = 10 * time.Second

func (e *endpoint) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, e.network, e.address)
}

// tlsConfig returns what Cluster API's client would use.
func (e *endpoint) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.roots, ServerName: e.host}
	if e.protocol == GRPC {
		config.NextProtos = []string{"h2"}
	}
	if e.certificate != nil {
		config.Certificates = []tls.Certificate{*e.certificate}
	}
	return config
}

// handshake connects and returns what the server agreed to.
func (e *endpoint) handshake(ctx context.Context, config *tls.Config) (tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := e.dial(ctx)
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

// connectError explains why there is no connection.
func (e *endpoint) connectError(err error) *ConnectError {
	var (
		netErr    net.Error
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		record    tls.RecordHeaderError
	)
	c := &ConnectError{URL: e.url, Err: err}
	other := "https://" + e.address
	switch {
	case errors.Is(err, context.Canceled):
		c.Problem = "interrupted"
	case errors.As(err, &authority) && e.roots == nil:
		c.Problem, c.Hint = "its certificate is not trusted: the system does not know who signed it", "Give the CA that signed it: --ca FILE, or Target.CA."
	case errors.As(err, &authority):
		c.Problem, c.Hint = "its certificate is not signed by the CA that was given", "Give the CA that signed it: --ca FILE, or Target.CA."
	case errors.As(err, &record):
		c.Problem, c.Hint = "it does not speak TLS", "gRPC without TLS is grpc://"+e.address+"; is it perhaps a port for metrics or health?"
	case errors.As(err, &dns):
		c.Problem = fmt.Sprintf("no address for host %q", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		c.Problem, c.Hint = "connection refused: nothing serves there", "Does it run, and is the port right?"
	case errors.Is(err, syscall.ENOENT):
		c.Problem, c.Hint = "there is no such socket", "Does it run, and is the path right?"
	case errors.Is(err, syscall.EACCES):
		c.Problem, c.Hint = "no permission to connect to the socket", "Who may write to the socket's file decides its permissions."
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		c.Problem = fmt.Sprintf("no connection within %s", dialTimeout)
	case strings.Contains(err.Error(), "no application protocol"), errors.Is(err, errNoHTTP2):
		c.Problem, c.Hint = "it does not speak HTTP/2, as gRPC does", "Is it a REST extension? That is "+other+"."
	case strings.Contains(err.Error(), "remote error"):
		c.Problem, c.Hint = "it ended the TLS handshake: "+innermost(err).Error(), "Does it ask for a certificate? Show one: --cert FILE and --key FILE, or Target.Certificate."
	default:
		c.Problem = "no connection: " + innermost(err).Error()
	}
	return c
}

// errNoHTTP2 is a TLS server that did not agree to HTTP/2.
var errNoHTTP2 = errors.New("HTTP/2 was not agreed on")
