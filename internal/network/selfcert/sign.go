// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"time"
)

const (
	// authorityLifetime is how long a CA is valid, and a certificate whose copies do not follow a renewal; servingLifetime
	// is that of other certificates. Both are what deploy/ has from cert-manager, which renews in the last third, too.
	authorityLifetime = 10 * 365 * 24 * time.Hour
	servingLifetime   = 90 * 24 * time.Hour
	// skew is how much earlier than now certificates begin, because clocks differ.
	skew = time.Hour
	// spread is how long a CA with a new key is in the bundles before it signs, and retired how long the one before it
	// stays there after that: both are longer than Secrets in volumes, and Cluster API, take to follow.
	spread  = 10 * time.Minute
	retired = 24 * time.Hour
)

// isDue reports whether a certificate is to be renewed.
func isDue(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3))
}

// newKey returns a key.
func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// newAuthority returns a CA for a key. With the key of the CA before it, the certificates which that one signed stay
// valid.
func newAuthority(name string, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return sign(template, template, key.Public(), key, now, authorityLifetime)
}

// newLeaf returns a certificate that a CA has signed, with the subject, names and usages of a template. It does not
// outlive the CA.
func newLeaf(
	template *x509.Certificate, key crypto.Signer, a *pair, now time.Time, lifetime time.Duration,
) (*x509.Certificate, error) {
	unsigned := *template
	unsigned.KeyUsage = x509.KeyUsageDigitalSignature
	return sign(&unsigned, a.cert, key.Public(), a.key, now, min(lifetime, a.cert.NotAfter.Sub(now)))
}

func sign(
	template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer, now time.Time, lifetime time.Duration,
) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.BasicConstraintsValid = serial, true
	template.NotBefore, template.NotAfter = now.Add(-skew), now.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// signed reports whether a has signed c, also by a certificate of the same key.
func (a *pair) signed(c *x509.Certificate) bool { return c.CheckSignatureFrom(a.cert) == nil }

// sameKey reports whether two certificates have one key.
func sameKey(a, b *x509.Certificate) bool {
	key, ok := a.PublicKey.(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && key.Equal(b.PublicKey)
}

// hasNames reports whether a certificate is for all names of a template.
func hasNames(c, template *x509.Certificate) bool {
	missing := func(name string) bool { return !slices.Contains(c.DNSNames, name) }
	return c.Subject.CommonName == template.Subject.CommonName && !slices.ContainsFunc(template.DNSNames, missing)
}
