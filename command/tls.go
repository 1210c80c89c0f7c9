// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/certs"
)

// tlsOptions are the flags about TLS of everything that the gateway serves. Cluster API's managers have them, too.
type tlsOptions struct {
	minVersion   string
	cipherSuites []string
}

func (o *tlsOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.minVersion, "tls-min-version", "VersionTLS12",
		"least version of TLS to serve: "+strings.Join(certs.VersionNames(), " or "))
	f.StringSliceVar(&o.cipherSuites, "tls-cipher-suites", nil,
		"cipher suites to serve with TLS 1.2, separated by commas; Go's choice by default. TLS 1.3 has its own")
}

func (o *tlsOptions) settings() (s certs.Settings, err error) {
	if s.MinVersion, err = certs.ParseVersion(o.minVersion); err != nil {
		return s, usagef("--tls-min-version: %w", err)
	}
	if s.CipherSuites, err = certs.ParseCipherSuites(o.cipherSuites, s.MinVersion); err != nil {
		return s, usagef("--tls-cipher-suites: %w", err)
	}
	return s, nil
}
