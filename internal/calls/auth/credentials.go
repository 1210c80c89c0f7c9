// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Credentials are what a caller shows to prove who it is.
type Credentials struct {
	// TLS is the state of the connection, whose handshake has verified the certificate; nil without TLS.
	TLS *tls.ConnectionState
	// Authorization has the values of the header of that name.
	Authorization []string
	// Host is the address of the caller, without its port.
	Host string
}

// Method is how a caller was authenticated.
type Method string

// The methods.
const (
	None        Method = "none"
	Certificate Method = "certificate"
	Token       Method = "token"
	Kubernetes  Method = "kubernetes"
)

// Caller is who calls. The name is empty for a caller that was not authenticated.
type Caller struct {
	Name   string
	Method Method
}

// certificate returns the certificate that the handshake has verified, or nil.
func (c *Credentials) certificate() *x509.Certificate {
	if c.TLS == nil || len(c.TLS.VerifiedChains) == 0 {
		return nil
	}
	return c.TLS.VerifiedChains[0][0]
}

// bearer returns the token that the caller sends; empty if it sends none. It returns an error if there is something
// else in its place, or more than one.
func (c *Credentials) bearer() (string, error) {
	switch len(c.Authorization) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", hook.Errorf(hook.Unauthenticated, "the request has several Authorization headers: send one")
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(c.Authorization[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return "", hook.Errorf(hook.Unauthenticated, `the Authorization header has no token: send "Bearer <token>"`)
	case len(token) > limits.TokenBytes:
		return "", hook.Errorf(hook.Unauthenticated, "the token is longer than %d bytes", limits.TokenBytes)
	}
	return token, nil
}

// certificateNames returns the names by which a certificate may be allowed: URIs, such as SPIFFE IDs, and DNS names of
// the subject alternative names, and the common name.
func certificateNames(c *x509.Certificate) []string {
	names := make([]string, 0, len(c.URIs)+len(c.DNSNames)+1)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.DNSNames...)
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}

// DisplayName returns a name as logs and errors show it.
func DisplayName(name string) string { return text.Printable(text.Cut(name, limits.CallerNameBytes)) }
