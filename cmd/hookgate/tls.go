// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// tlsOptions are the flags about TLS of everything that the gateway serves. Cluster API's managers have them, too.
type tlsOptions struct {
	minVersion   string
	cipherSuites []string
}

func (o *tlsOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.minVersion, "tls-min-version", "VersionTLS12", "least version of TLS to serve: "+strings.Join(servedTLSVersions(), " or "))
	f.StringSliceVar(&o.cipherSuites, "tls-cipher-suites", nil, "cipher suites to serve with TLS 1.2, separated by commas; Go's choice by default. TLS 1.3 has its own")
}

// servedTLSVersions are those that are still safe. HTTP/2 wants 1.2 at least.
func servedTLSVersions() []string { return []string{"VersionTLS12", "VersionTLS13"} }

// settings returns what the flags change of a server's TLS.
func (o *tlsOptions) settings() (func(*tls.Config), error) {
	version, err := cliflag.TLSVersion(o.minVersion)
	if err != nil || version < tls.VersionTLS12 {
		return nil, usagef("--tls-min-version: want %s, got %q", strings.Join(servedTLSVersions(), " or "), o.minVersion)
	}
	suites, err := cliflag.TLSCipherSuites(o.cipherSuites)
	if err != nil {
		return nil, usagef("--tls-cipher-suites: %w; known are %s", err, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
	}
	// Go refuses to serve HTTP/2, which gRPC needs, without the suite that RFC 9113, section 9.2.2, wants for the certificate's key.
	wanted := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	if len(suites) > 0 && version < tls.VersionTLS13 && !slices.ContainsFunc(suites, func(s uint16) bool { return slices.Contains(wanted, s) }) {
		return nil, usagef("--tls-cipher-suites: HTTP/2 needs %s or %s; add the one for the key of your certificate, or leave TLS 1.2 out with --tls-min-version=VersionTLS13",
			tls.CipherSuiteName(wanted[0]), tls.CipherSuiteName(wanted[1]))
	}
	return func(c *tls.Config) {
		c.MinVersion = version
		if len(suites) > 0 {
			c.CipherSuites = suites
		}
	}, nil
}
