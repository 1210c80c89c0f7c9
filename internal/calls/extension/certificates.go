// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

// Certificates are the certificates that calls of an extension depend on. What its servers show is known as soon as one
// TLS handshake has reached that point: the probe of a server makes one. The zero value is that of an extension without
// TLS.
type Certificates struct {
	// Leaf is the certificate of the server, and Chain the first to expire of those that vouch for it. Of several
	// servers, these are the first to expire that were shown lately. Either may be unknown.
	Leaf, Chain certs.Expiry
	// Bundle has the certificates of caBundle.
	Bundle []certs.Expiry
}

// partners has the servers of extensions, by where they are and what they are trusted by, as probes share them.
type partners struct {
	mu    sync.Mutex
	byKey map[partnerKey]*partner
}

type partnerKey struct{ authority, caBundle string }

// partner is what is known of the certificates of a server.
type partner struct {
	host   string
	bundle []certs.Expiry

	mu    sync.Mutex
	shown []shown // the latest last
}

// shown is what a server has shown in a handshake.
type shown struct {
	leaf, chain certs.Expiry
	at          time.Time
}

// of returns the partner of an endpoint.
func (ps *partners) of(e *endpoint.Endpoint, caBundle []byte) *partner {
	key := partnerKey{e.Authority, string(caBundle)}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byKey[key]
	if p == nil {
		p = &partner{host: e.Host, bundle: certs.Bundle(caBundle)}
		if ps.byKey == nil {
			ps.byKey = map[partnerKey]*partner{}
		}
		ps.byKey[key] = p
	}
	return p
}

// find returns the partner of a ClientConfig, unless it has no TLS.
func (ps *partners) find(cc registry.ClientConfig) (*partner, bool) {
	e, err := endpoint.Parse(cc.URL, endpoint.HTTPS, endpoint.GRPCS)
	if err != nil {
		return nil, false
	}
	return ps.of(e, cc.CABundle), true
}

// retain forgets the partners of all ClientConfigs but these.
func (ps *partners) retain(ccs []registry.ClientConfig) {
	used := make(map[*partner]bool, len(ccs))
	for _, cc := range ccs {
		if p, ok := ps.find(cc); ok {
			used[p] = true
		}
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for key, p := range ps.byKey {
		if !used[p] {
			delete(ps.byKey, key)
		}
	}
}

// verified implements tls.Config.VerifyConnection: it remembers what was verified, and refuses nothing.
func (p *partner) verified(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 || state.PeerCertificates[0].VerifyHostname(p.host) != nil {
		return nil //nolint:nilerr // a proxy's certificate, which is not verified here
	}
	var weakest []certs.Expiry // of each chain; any one will do
	for _, chain := range state.VerifiedChains {
		var above []certs.Expiry
		for _, c := range chain[1:] {
			above = append(above, certs.ExpiryOf(c))
		}
		weakest = append(weakest, certs.First(above))
	}
	p.add(shown{certs.ExpiryOf(state.PeerCertificates[0]), certs.Last(weakest), time.Now()})
	return nil
}

// refused remembers what a server has shown if a certificate of it was refused because it has expired.
func (p *partner) refused(err error) {
	verify, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(verify.UnverifiedCertificates) == 0 {
		return
	}
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	leaf := verify.UnverifiedCertificates[0]
	if !ok || invalid.Reason != x509.Expired || leaf.VerifyHostname(p.host) != nil {
		return
	}
	s := shown{leaf: certs.ExpiryOf(leaf), at: time.Now()}
	if invalid.Cert != nil && !invalid.Cert.Equal(leaf) {
		s.chain = certs.ExpiryOf(invalid.Cert)
	}
	p.add(s)
}

// add remembers s. What was valid is no longer believed to be refused: expired certificates before it are forgotten.
func (p *partner) add(s shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	valid := !s.expired(s.at)
	p.shown = slices.DeleteFunc(p.shown, func(before shown) bool {
		return before.leaf == s.leaf && before.chain == s.chain || valid && before.expired(s.at)
	})
	p.shown = append(p.shown, s)
	if n := len(p.shown) - limits.ShownCertificates; n > 0 {
		p.shown = slices.Delete(p.shown, 0, n)
	}
}

func (s *shown) expired(now time.Time) bool { return s.leaf.Expired(now) || s.chain.Expired(now) }

// certificates returns what is known at a time.
func (p *partner) certificates(now time.Time) Certificates {
	all := Certificates{Bundle: p.bundle}
	p.mu.Lock()
	defer p.mu.Unlock()
	var leaves, chains []certs.Expiry
	for i := range p.shown {
		s := &p.shown[i]
		if i < len(p.shown)-1 && now.Sub(s.at) > limits.ShownCertificateTime {
			continue
		}
		leaves = append(leaves, s.leaf)
		if !s.chain.NotAfter.IsZero() {
			chains = append(chains, s.chain)
		}
	}
	all.Leaf, all.Chain = certs.First(leaves), certs.First(chains)
	return all
}
