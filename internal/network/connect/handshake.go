// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

var (
	// errPlainText reports a server without TLS that answers in text, perhaps HTTP/1.1. HTTP/2 begins with a zero byte.
	errPlainText = errors.New("the server answers in text, not in HTTP/2")
	// errNoGreeting reports a server that hangs up, or sends a TLS alert, after the preface of HTTP/2 without TLS.
	errNoGreeting = errors.New("the server does not answer HTTP/2 without TLS")
	// errCertificateRequired is the alert of servers that require a certificate. With TLS 1.3, they send it when the
	// handshake is over for the client, and whether the client sees it depends on timing.
	errCertificateRequired = errors.New("tls: certificate required")
)

// Failures remembers why the latest connection over gRPC was not made; gRPC reports it as a text with addresses and
// ports in it.
type Failures struct {
	// Seen is called with each error; nil for no one.
	Seen func(err error)

	latest atomic.Pointer[error] // nil inside after a connection that was made
	last   atomic.Pointer[error] // the same, but of the latest one that was not made
}

// Set records how a connection went; nil if it was made.
func (f *Failures) Set(err error) {
	f.latest.Store(&err)
	if err != nil {
		f.last.Store(&err)
		if f.Seen != nil {
			f.Seen(err)
		}
	}
}

// Latest returns how the latest connection went; nil if it was made.
func (f *Failures) Latest() error {
	if err := f.latest.Load(); err != nil {
		return *err
	}
	return nil
}

// of returns the failure that detail, a text of gRPC, is about. While a connection is being made, that is the one
// before.
func (f *Failures) of(detail string) error {
	err := f.Latest()
	if last := f.last.Load(); err == nil && last != nil &&
		(strings.Contains(detail, "Error while dialing") ||
			strings.Contains(detail, "authentication handshake failed")) {
		return *last
	}
	return err
}

// classify returns the failure that detail, a text of gRPC, is about.
func (f *Failures) classify(detail string) *Failure {
	switch err := f.of(detail); {
	case err != nil:
		return ClassifyGRPC(err)
	case strings.Contains(detail, "health check failed"):
		return &Failure{Text: "the extension says that it is not serving"}
	}
	return &Failure{Reason: Broken, Text: "connection closed without an answer", Temporary: true}
}

// ClassifyGRPC returns the Failure for err, an error of a gRPC connection.
func ClassifyGRPC(err error) *Failure {
	switch {
	case IsNoCommonProtocol(err), errors.Is(err, errPlainText),
		strings.Contains(err.Error(), "missing selected ALPN property"):
		return &Failure{
			Kind: hook.Unreachable, Reason: NoHTTP2, Text: "the server does not speak HTTP/2, as gRPC does", Cause: err,
		}
	case errors.Is(err, errNoGreeting):
		return &Failure{
			Kind: hook.Unreachable, Reason: NoPlaintext, Text: "the server does not speak gRPC without TLS", Cause: err,
		}
	}
	return Classify(err)
}

// handshakes are credentials that remember how the latest TLS handshake went, and bound connections.
type handshakes struct {
	credentials.TransportCredentials
	tls      *tls.Config // nil without TLS
	failures *Failures
	bucket   *overhead.Bucket
}

func newHandshakes(config *tls.Config, f *Failures, bucket *overhead.Bucket) handshakes {
	h := handshakes{TransportCredentials: insecure.NewCredentials(), tls: config, failures: f, bucket: bucket}
	if config != nil {
		h.TransportCredentials = credentials.NewTLS(config)
	}
	return h
}

// ClientHandshake implements credentials.TransportCredentials. The connection is bounded.
func (h handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (
	net.Conn, credentials.AuthInfo, error,
) {
	c, info, err := h.handshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return newBoundedConn(c, h.bucket, h.failures), info, nil
}

func (h handshakes) handshake(ctx context.Context, authority string, raw net.Conn) (
	net.Conn, credentials.AuthInfo, error,
) {
	handshake, unanswered := h.TransportCredentials, false
	if h.tls != nil && h.tls.GetClientCertificate == nil && len(h.tls.Certificates) == 0 {
		config := h.tls.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			unanswered = true
			return &tls.Certificate{}, nil // none
		}
		handshake = credentials.NewTLS(config)
	}
	c, info, err := handshake.ClientHandshake(ctx, authority, raw)
	if err == nil && unanswered {
		// Whether it failed is not known yet.
		return &watched{Conn: c, failures: h.failures, judge: accepted, silent: errCertificateRequired}, info, nil
	}
	h.failures.Set(err)
	if err == nil && h.tls == nil {
		return &watched{Conn: c, failures: h.failures, judge: greeting, silent: errNoGreeting}, info, nil
	}
	return c, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	h.TransportCredentials = h.TransportCredentials.Clone()
	return h
}

// watched is a connection of which it is not known yet whether the server accepts it: that shows in the first thing
// that the server says.
type watched struct {
	net.Conn
	failures *Failures
	judge    func(first byte) error // returns what the server's first byte means
	silent   error                  // what it means that the connection breaks before the server has said anything
	heard    atomic.Bool
}

func (c *watched) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Swap(true) {
		c.failures.Set(c.judge(p[0]))
	}
	return n, c.check(err)
}

func (c *watched) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.check(err)
}

// check returns err. Whichever side, reading or writing, notices first that the connection broke records why.
func (c *watched) check(err error) error {
	if err != nil && !c.heard.Load() && !errors.Is(err, net.ErrClosed) {
		c.failures.Set(c.silent)
	}
	return err
}

// alertRecord is the first byte of an alert of TLS.
const alertRecord = 21

// greeting interprets the first byte from a server that was greeted in HTTP/2 without TLS.
func greeting(first byte) error {
	switch {
	case ' ' <= first && first <= '~':
		return errPlainText
	case first == alertRecord:
		return errNoGreeting
	}
	return nil
}

// accepted interprets the first byte from a server that may require a certificate: it does not.
func accepted(byte) error { return nil }
