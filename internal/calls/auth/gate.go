// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Reviewer checks tokens that are not in the file of callers, and what their owners may call.
type Reviewer interface {
	// Review returns who has the token, if it may call h, which is nil for no hook in particular. Its errors are of
	// the kinds Unauthenticated, Forbidden, NotReady and Overloaded.
	Review(ctx context.Context, token string, h *catalog.Hook) (name string, err error)
}

// Certificates knows which certificates callers must show now.
type Certificates interface {
	// AsksForCertificates reports whether there are authorities that sign certificates of callers.
	AsksForCertificates() bool
	// Trusts reports whether one of these authorities has signed the certificate of a connection.
	Trusts(state *tls.ConnectionState) bool
}

// Config configures a Gate. All fields are optional: a gate without any admits everyone.
type Config struct {
	Certificates Certificates
	// Names lists the names of certificates that may call every hook. If it is empty and there are no Callers, all
	// certificates may.
	Names []string
	// Callers are the callers that a file lists.
	Callers *CallersFile
	// Reviewer checks tokens that Callers does not have.
	Reviewer Reviewer
	// Limits bound what one caller may do.
	Limits Limits
}

// Gate admits callers.
type Gate struct {
	config  Config
	limiter *limiter
}

// NewGate returns a Gate.
func NewGate(c Config) *Gate { return &Gate{config: c, limiter: newLimiter(c.Limits)} }

// Admission is the place of one call. The zero value is that of a call that was not admitted.
type Admission struct {
	Caller Caller

	limiter *limiter
	usage   *usage
}

// Release gives back the place of the call. Call it once, when the call has ended.
func (a Admission) Release() {
	if a.usage != nil {
		a.limiter.end(a.usage)
	}
}

// Tokens reports whether callers may authenticate by tokens.
func (g *Gate) Tokens() bool { return g.config.Callers != nil || g.config.Reviewer != nil }

// Required reports whether callers must authenticate.
func (g *Gate) Required() bool { return g.Tokens() || len(g.config.Names) > 0 || g.certificates() }

func (g *Gate) certificates() bool {
	return g.config.Certificates != nil && g.config.Certificates.AsksForCertificates()
}

// Challenge returns the value of WWW-Authenticate for a caller that was not authenticated.
func (g *Gate) Challenge() string {
	if g.Tokens() {
		return `Bearer realm="hookgate"`
	}
	return `ClientCertificate realm="hookgate"`
}

// Admit admits a call of h by the caller with these credentials, if it may call h and does not call too much. A nil h
// is a hook that does not exist: every caller may ask for it that the gate knows. The caller is returned with an error,
// too, as far as it is known. Errors are of the kinds Unauthenticated, Forbidden, NotReady and Overloaded.
func (g *Gate) Admit(ctx context.Context, c Credentials, h *catalog.Hook) (Admission, error) {
	caller, err := g.authenticate(ctx, c, h)
	if err != nil {
		return Admission{Caller: caller}, err
	}
	counted := caller
	if caller.Name == "" {
		counted = anonymous(c.Host)
	}
	u, err := g.limiter.begin(counted)
	return Admission{Caller: caller, limiter: g.limiter, usage: u}, err
}

// authenticate returns the caller with these credentials, if it may call h.
func (g *Gate) authenticate(ctx context.Context, c Credentials, h *catalog.Hook) (Caller, error) {
	if !g.Required() {
		return Caller{Method: None}, nil
	}
	if g.Tokens() {
		token, err := c.bearer()
		if err != nil {
			return Caller{Method: Token}, err
		}
		if token != "" {
			return g.admitToken(ctx, token, h)
		}
	}
	if certificate := c.certificate(); certificate != nil && g.certificates() {
		return g.admitCertificate(c.TLS, certificate, h)
	}
	return Caller{Method: None}, hook.Errorf(hook.Unauthenticated, "the caller does not say who it is: %s", g.advice())
}

// advice says how a caller can authenticate.
func (g *Gate) advice() string {
	var ways []string
	if g.certificates() {
		ways = append(ways, "show a client certificate of an authority that the gateway trusts")
	}
	if g.Tokens() {
		ways = append(ways, `send a token in the header "Authorization: Bearer <token>"`)
	}
	return strings.Join(ways, ", or ")
}

func (g *Gate) admitToken(ctx context.Context, token string, h *catalog.Hook) (Caller, error) {
	if g.config.Callers != nil {
		if entry := g.config.Callers.current().byToken(token); entry != nil {
			caller := Caller{Name: entry.Name, Method: Token}
			if entry.expired(time.Now()) {
				return caller, hook.Errorf(hook.Unauthenticated,
					"the token of caller %q has expired: ask the operator of the gateway for a new token", entry.Name)
			}
			return caller, allowed(caller, h, entry)
		}
	}
	if g.config.Reviewer == nil {
		return Caller{Method: Token}, hook.Errorf(hook.Unauthenticated,
			"the gateway does not know the token: ask the operator of the gateway for a valid token")
	}
	name, err := g.config.Reviewer.Review(ctx, token, h)
	return Caller{Name: DisplayName(name), Method: Kubernetes}, err
}

func (g *Gate) admitCertificate(
	state *tls.ConnectionState, certificate *x509.Certificate, h *catalog.Hook,
) (Caller, error) {
	names := certificateNames(certificate)
	caller := Caller{Method: Certificate}
	if len(names) > 0 {
		caller.Name = DisplayName(names[0])
	}
	// The handshake has checked both, but the connection may be older than the end of the certificate, or than the
	// removal of the authority.
	switch {
	case time.Now().After(certificate.NotAfter):
		return caller, hook.Errorf(hook.Unauthenticated, "the client certificate has expired: renew it, and connect again")
	case !g.config.Certificates.Trusts(state):
		return caller, hook.Errorf(hook.Unauthenticated,
			"the gateway no longer trusts the authority that signed the client certificate: show a certificate "+
				"of another authority")
	}
	if g.config.Callers == nil && len(g.config.Names) == 0 {
		return caller, nil
	}
	for _, name := range names {
		if slices.Contains(g.config.Names, name) {
			return Caller{Name: DisplayName(name), Method: Certificate}, nil
		}
	}
	if g.config.Callers != nil {
		if entries := g.config.Callers.current().byNames(names, time.Now()); len(entries) > 0 {
			caller.Name = entries[0].Name
			return caller, allowed(caller, h, entries...)
		}
	}
	return caller, hook.Errorf(hook.Forbidden,
		"the client certificate of %q is not allowed to call: ask the operator of the gateway to list one of the "+
			"certificate's names",
		caller.Name)
}

// allowed returns an error unless one of the entries, which are those of a caller, allows h.
func allowed(caller Caller, h *catalog.Hook, entries ...*entry) error {
	for _, e := range entries {
		if e.allows(h) {
			return nil
		}
	}
	return hook.Errorf(hook.Forbidden,
		"caller %q may not call %s: ask the operator of the gateway to allow the hook for this caller", caller.Name, h.Hook)
}
