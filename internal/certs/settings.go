// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
)

// Settings are the operator's choices for the TLS of servers. The zero value is Go's choice, from TLS 1.2 on.
type Settings struct {
	MinVersion   uint16
	CipherSuites []uint16 // of TLS 1.2
}

// VersionNames returns the versions that ParseVersion accepts: those that are still safe, and that HTTP/2 allows.
func VersionNames() []string { return []string{"VersionTLS12", "VersionTLS13"} }

// ParseVersion returns the version of TLS with this name.
func ParseVersion(name string) (uint16, error) {
	version, err := cliflag.TLSVersion(name)
	if err != nil || version < tls.VersionTLS12 {
		return 0, fmt.Errorf("want %s, got %q", strings.Join(VersionNames(), " or "), name)
	}
	return version, nil
}

// ParseCipherSuites returns the cipher suites with these names, for a server with this least version of TLS.
func ParseCipherSuites(names []string, minVersion uint16) ([]uint16, error) {
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
