// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"cmp"
	"crypto/x509"
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// nearEnd is the part of a certificate's lifetime in which it should have been replaced, and mostNearEnd the most that
// this may be. Programs such as cert-manager replace a certificate in the last third.
const (
	nearEnd     = 5
	mostNearEnd = 30 * 24 * time.Hour
)

// Expiry says when a certificate ends. The zero value stands for no certificate.
type Expiry struct {
	Subject             string
	NotBefore, NotAfter time.Time
}

// ExpiryOf returns when a certificate ends.
func ExpiryOf(c *x509.Certificate) Expiry {
	subject := c.Subject.String()
	if subject == "" && len(c.DNSNames) > 0 {
		subject = c.DNSNames[0]
	}
	return Expiry{
		Subject:   text.Cut(text.Printable(cmp.Or(subject, "no subject")), limits.QuotedBytes),
		NotBefore: c.NotBefore, NotAfter: c.NotAfter,
	}
}

// Near reports whether the certificate has expired, or has less than 30 days and less than a fifth of its lifetime
// left.
func (e Expiry) Near(now time.Time) bool {
	near := min(e.NotAfter.Sub(e.NotBefore)/nearEnd, mostNearEnd)
	return !e.NotAfter.IsZero() && now.After(e.NotAfter.Add(-near))
}

// Expired reports whether the certificate is not valid any more.
func (e Expiry) Expired(now time.Time) bool { return !e.NotAfter.IsZero() && now.After(e.NotAfter) }

// Text says when the certificate expires or has expired. It changes only when that happens.
func (e Expiry) Text(now time.Time) string {
	at := " " + e.NotAfter.UTC().Format(time.RFC3339)
	if e.Expired(now) {
		return "expired" + at
	}
	return "expires" + at
}

// First returns the certificate that ends first, and Last the one that ends last. They return the zero value if there
// is none.
func First(all []Expiry) Expiry { return end(all, slices.MinFunc[[]Expiry]) }

// Last is described with First.
func Last(all []Expiry) Expiry { return end(all, slices.MaxFunc[[]Expiry]) }

func end(all []Expiry, pick func([]Expiry, func(a, b Expiry) int) Expiry) Expiry {
	if len(all) == 0 {
		return Expiry{}
	}
	return pick(all, func(a, b Expiry) int { return a.NotAfter.Compare(b.NotAfter) })
}

// Bundle returns when each certificate of a bundle in PEM ends. Blocks that are no certificates are left out, as Go
// does when it trusts a bundle.
func Bundle(pem []byte) []Expiry {
	found, _ := parse(pem, true) // it skips what is wrong
	all := make([]Expiry, len(found))
	for i, c := range found {
		all[i] = ExpiryOf(c)
	}
	return all
}
