// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
)

// tlsOptions are the flags about TLS of everything that the gateway serves. Cluster API's managers have them, too.
type tlsOptions struct {
	minVersion   string
	cipherSuites []string
}

func (o *tlsOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.minVersion, "tls-min-version", "VersionTLS12",
		"lowest version of TLS to serve: "+strings.Join(tlsVersionNames(), " or "))
	f.StringSliceVar(&o.cipherSuites, "tls-cipher-suites", nil,
		"cipher suites to serve with TLS 1.2, separated by commas; default: chosen by Go; the cipher "+
			"suites of TLS 1.3 are fixed")
}

func (o *tlsOptions) settings() (s certs.Settings, err error) {
	if s.MinVersion, err = parseTLSVersion(o.minVersion); err != nil {
		return s, cmdline.Usagef("--tls-min-version: %w", err)
	}
	if s.CipherSuites, err = parseCipherSuites(o.cipherSuites, s.MinVersion); err != nil {
		return s, cmdline.Usagef("--tls-cipher-suites: %w", err)
	}
	return s, nil
}

// tlsVersionNames returns the versions that parseTLSVersion accepts: those that are still safe, and that HTTP/2 allows.
func tlsVersionNames() []string { return []string{"VersionTLS12", "VersionTLS13"} }

// parseTLSVersion returns the version of TLS with this name.
func parseTLSVersion(name string) (uint16, error) {
	version, err := cliflag.TLSVersion(name)
	if err != nil || version < tls.VersionTLS12 {
		return 0, fmt.Errorf("want %s, got %q", strings.Join(tlsVersionNames(), " or "), name)
	}
	return version, nil
}

// parseCipherSuites returns the cipher suites with these names, for a server with this least version of TLS.
func parseCipherSuites(names []string, minVersion uint16) ([]uint16, error) {
	suites, err := cliflag.TLSCipherSuites(names)
	if err != nil {
		return nil, fmt.Errorf("%w; known are %s", err, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
	}
	// Go refuses to serve HTTP/2, which gRPC needs, without the suite that RFC 9113, section 9.2.2, demands for the key
	// of the certificate.
	required := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	isRequired := func(s uint16) bool { return slices.Contains(required, s) }
	if len(suites) > 0 && minVersion < tls.VersionTLS13 && !slices.ContainsFunc(suites, isRequired) {
		return nil, fmt.Errorf("HTTP/2 needs %s or %s; add the one for the key of your certificate, or leave "+
			"TLS 1.2 out with --tls-min-version=VersionTLS13",
			tls.CipherSuiteName(required[0]), tls.CipherSuiteName(required[1]))
	}
	return suites, nil
}
