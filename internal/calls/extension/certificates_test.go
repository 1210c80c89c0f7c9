// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/registry"
)

const day = 24 * time.Hour

// signer is a CA that signs certificates which have expired, too.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// sign returns a certificate for 127.0.0.1, of a CA if parent is nil, that is valid until the time, which may be over.
func sign(t *testing.T, parent *signer, until time.Time) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(until.UnixNano()), NotBefore: until.Add(-60 * day), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if parent == nil {
		template.Subject, template.IsCA, template.BasicConstraintsValid = pkix.Name{CommonName: until.String()}, true, true
		parent = &signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.certificate, &key.PublicKey, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{certificate, key}
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
}

// secureGRPC starts a gRPC server with a certificate.
func secureGRPC(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "grpcs://" + l.Addr().String()
}

// TestCertificatesOfExtensions checks what is known of the certificates of a server before and after a probe has met it,
// by each client: valid ones, and ones that have expired.
func TestCertificatesOfExtensions(t *testing.T) {
	now := time.Now()
	caEnd := now.Add(20 * day)
	ca, old, unused := sign(t, nil, caEnd), sign(t, nil, now.Add(-day)), newAuthority(t)
	for name, start := range map[string]func(t *testing.T, certificate tls.Certificate) registry.ClientConfig{
		"HTTP/1.1": func(t *testing.T, certificate tls.Certificate) registry.ClientConfig {
			return newServer(t, unused, answer(`{}`), func(s *httptest.Server) { s.TLS.Certificates[0] = certificate }).cc
		},
		"HTTP/2": func(t *testing.T, certificate tls.Certificate) registry.ClientConfig {
			return newServer(t, unused, answer(`{}`), func(s *httptest.Server) {
				s.EnableHTTP2, s.TLS.NextProtos, s.TLS.Certificates[0] = true, []string{"h2"}, certificate
			}).cc
		},
		"gRPC": func(t *testing.T, certificate tls.Certificate) registry.ClientConfig {
			return registry.ClientConfig{URL: secureGRPC(t, certificate), Protocol: registry.GRPC}
		},
	} {
		for _, leafEnd := range []time.Time{now.Add(10 * day), now.Add(-time.Hour)} {
			leaf := sign(t, &ca, leafEnd)
			cc := start(t, tls.Certificate{Certificate: [][]byte{leaf.certificate.Raw}, PrivateKey: leaf.key})
			cc.CABundle = slices.Concat(old.pem(), ca.pem())
			p := NewProtocols(withHooks(Config{PreferHTTP2: name == "HTTP/2"}))
			t.Cleanup(p.Close)
			before := p.Certificates(cc)
			if !before.Leaf.NotAfter.IsZero() || !before.Chain.NotAfter.IsZero() || len(before.Bundle) != 2 {
				t.Errorf("%s: before the first connection: %+v", name, before)
			}
			if first, last := certs.First(before.Bundle), certs.Last(before.Bundle); !first.Expired(now) || !same(last, caEnd) {
				t.Errorf("%s: caBundle has %v", name, before.Bundle)
			}
			_, err := p.Probe(t.Context(), cc, true)
			valid := leafEnd.After(now)
			got := p.Certificates(cc)
			if (err == nil) != valid || !same(got.Leaf, leafEnd) || got.Leaf.Expired(now) == valid || !got.Leaf.Near(now) {
				t.Errorf("%s until %s: probe: %v; %+v", name, leafEnd, err, got.Leaf)
			}
			if valid && !same(got.Chain, caEnd) {
				t.Errorf("%s: the chain until %s: %+v", name, caEnd, got.Chain)
			}
			p.Retain(nil)
			if got := p.Certificates(cc); !got.Leaf.NotAfter.IsZero() {
				t.Errorf("%s: a server is remembered that no extension has: %+v", name, got)
			}
		}
	}
}

// same reports whether a certificate ends at a time, to the second, as certificates do.
func same(e certs.Expiry, at time.Time) bool { return e.NotAfter.Equal(at.Truncate(time.Second)) }

// TestCertificatesOfSeveralServers checks which certificate counts if servers of one extension show different ones: the
// first to expire of those shown lately. One that has expired does not once another is accepted.
func TestCertificatesOfSeveralServers(t *testing.T) {
	now := time.Now()
	show := func(leaf, ago time.Duration) shown {
		return shown{leaf: certs.Expiry{Subject: leaf.String(), NotAfter: now.Add(leaf)}, at: now.Add(-ago)}
	}
	for name, tt := range map[string]struct {
		shown []shown
		want  time.Duration
	}{
		"one, long ago":     {[]shown{show(90*day, 2*day)}, 90 * day},
		"two Pods":          {[]shown{show(5*day, time.Minute), show(90*day, time.Second)}, 5 * day},
		"renewed":           {[]shown{show(5*day, limits.ShownCertificateTime+1), show(90*day, time.Second)}, 90 * day},
		"expired, replaced": {[]shown{show(-day, time.Minute), show(90*day, time.Second)}, 90 * day},
		"valid, expired":    {[]shown{show(90*day, time.Minute), show(-day, time.Second)}, -day},
		"many": {[]shown{
			show(1*day, 6), show(2*day, 5), show(3*day, 4), show(4*day, 3), show(5*day, 2),
		}, 2 * day},
	} {
		var p partner
		for _, s := range tt.shown {
			p.add(s)
			p.add(s)
		}
		if got := p.certificates(now).Leaf.NotAfter.Sub(now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestCertificatesOfProxies checks that the certificate of a proxy is not taken for that of the extension behind it.
func TestCertificatesOfProxies(t *testing.T) {
	proxy := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	go func() {
		_ = tls.Server(there, &tls.Config{Certificates: []tls.Certificate{proxy}, MinVersion: tls.VersionTLS12}).HandshakeContext(context.Background())
	}()
	p := &partner{host: "elsewhere.example"}
	c := tls.Client(here, &tls.Config{InsecureSkipVerify: true, VerifyConnection: p.verified, MinVersion: tls.VersionTLS12})
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.shown) != 0 {
		t.Errorf("remembered %+v", p.shown)
	}
}
