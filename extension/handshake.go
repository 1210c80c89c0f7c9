// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// handshakes remembers how the latest TLS handshake of a channel went.
type handshakes struct {
	credentials.TransportCredentials
	tls     *tls.Config // nil where there is no TLS
	failure *failure
}

// newHandshakes returns the credentials of a channel with that TLS; nil for none.
func newHandshakes(config *tls.Config, f *failure) handshakes {
	if config == nil {
		return handshakes{TransportCredentials: insecure.NewCredentials(), failure: f}
	}
	return handshakes{TransportCredentials: credentials.NewTLS(config), tls: config, failure: f}
}

// ClientHandshake implements credentials.TransportCredentials.
func (h handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	handshake, unanswered := h.TransportCredentials, false
	if h.tls != nil && h.tls.GetClientCertificate == nil {
		config := h.tls.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			unanswered = true
			return &tls.Certificate{}, nil // none
		}
		handshake = credentials.NewTLS(config)
	}
	c, info, err := handshake.ClientHandshake(ctx, authority, raw)
	if err == nil && unanswered {
		return &unproven{Conn: c, failure: h.failure}, info, nil // whether it failed is not known yet
	}
	h.failure.set(err)
	if err == nil && h.tls == nil {
		return &greeted{Conn: c, failure: h.failure}, info, nil
	}
	return c, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials {
	h.TransportCredentials = h.TransportCredentials.Clone()
	return h
}

var (
	// errTalks is a server without TLS that says something in plain text: HTTP/1.1, perhaps. HTTP/2 begins with a zero.
	errTalks = errors.New("the server answers in plain text")
	// errNoGreeting is a server that hangs up, or sends an alert of TLS, when it is greeted as HTTP/2 without TLS is.
	errNoGreeting = errors.New("the server does not answer the greeting of HTTP/2")
)

// alertRecord is how an alert of TLS begins.
const alertRecord = 21

// greeted is a connection without TLS, which looks at the first thing that the server says.
type greeted struct {
	net.Conn
	failure *failure
	heard   atomic.Bool
}

func (c *greeted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Swap(true) {
		switch {
		case ' ' <= p[0] && p[0] <= '~':
			c.failure.set(errTalks)
		case p[0] == alertRecord:
			c.failure.set(errNoGreeting)
		}
	}
	return n, c.check(err)
}

func (c *greeted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.check(err)
}

// check returns err. What breaks the connection may be seen by the one who reads first, or the one who writes.
func (c *greeted) check(err error) error {
	if err != nil && !c.heard.Load() && !errors.Is(err, net.ErrClosed) {
		c.failure.set(errNoGreeting)
	}
	return err
}

// errCertificateRequired is what servers say that want a certificate. With TLS 1.3 they say so when the handshake is over for
// the client, and what it sees of that is a matter of luck.
var errCertificateRequired = &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}

// unproven is a connection to a server that asked for a certificate and got none. If it breaks before the server has sent
// anything, that is why.
type unproven struct {
	net.Conn
	failure *failure
	proven  atomic.Bool
}

func (c *unproven) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.proven.Swap(true) {
		c.failure.set(nil)
	}
	return n, c.check(err)
}

func (c *unproven) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.check(err)
}

// check returns err, which is remembered as what it means.
func (c *unproven) check(err error) error {
	if err != nil && !c.proven.Load() && !errors.Is(err, net.ErrClosed) {
		c.failure.set(errCertificateRequired)
	}
	return err
}
