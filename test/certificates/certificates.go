// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes certificates for the servers of tests, each pair with a CA of its own. What cannot be made
// or written ends the test.
package certificates

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

// New returns a pair for these hosts, or for loopback without one, which is valid for an hour.
func New(t testing.TB, hosts ...string) *devcert.Pair {
	t.Helper()
	pair, err := devcert.New(time.Now().Add(time.Hour), hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// In returns a pair as New does, and writes it to a directory, from which servers read it.
func In(t testing.TB, dir string, hosts ...string) *devcert.Pair {
	t.Helper()
	pair := New(t, hosts...)
	if err := pair.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return pair
}

// Of returns the certificate of a pair, for crypto/tls.
func Of(t testing.TB, pair *devcert.Pair) tls.Certificate {
	t.Helper()
	certificate, err := pair.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Server returns the settings of a server that shows the certificate of a pair.
func Server(t testing.TB, pair *devcert.Pair) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{Of(t, pair)}, MinVersion: tls.VersionTLS12}
}
