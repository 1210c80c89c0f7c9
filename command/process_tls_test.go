// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"strings"
	"testing"
)

func TestTLSFlags(t *testing.T) {
	const aes256, aes128 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	for name, tc := range map[string]struct {
		reason  string
		version string
		suites  []string
		want    *tls.Config
		refused string
	}{
		"default":     {reason: "Go chooses suites", version: "VersionTLS12", want: &tls.Config{MinVersion: tls.VersionTLS12}},
		"both":        {reason: "what is asked for is served", version: "VersionTLS12", suites: []string{aes128}, want: &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}},
		"TLS 1.3":     {reason: "HTTP/2 needs nothing more of TLS 1.3", version: "VersionTLS13", suites: []string{aes256}, want: &tls.Config{MinVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}},
		"no HTTP/2":   {reason: "gRPC would not be served", version: "VersionTLS12", suites: []string{aes256}, refused: "--tls-cipher-suites: HTTP/2 needs"},
		"unknown":     {reason: "a typing error is reported", version: "VersionTLS12", suites: []string{"TLS_X"}, refused: "--tls-cipher-suites: Cipher suite TLS_X not supported or doesn't exist; known are TLS_"},
		"old version": {reason: "it is broken", version: "VersionTLS11", refused: `--tls-min-version: want VersionTLS12 or VersionTLS13, got "VersionTLS11"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&tlsOptions{minVersion: tc.version, cipherSuites: tc.suites}).settings()
			if tc.refused != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.refused) {
					t.Errorf("got %v, want %s: %s", err, tc.refused, tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v, although %s", err, tc.reason)
			}
			if got.MinVersion != tc.want.MinVersion || len(got.CipherSuites) != len(tc.want.CipherSuites) || len(got.CipherSuites) > 0 && got.CipherSuites[0] != tc.want.CipherSuites[0] {
				t.Errorf("got %x %x, want %x %x: %s", got.MinVersion, got.CipherSuites, tc.want.MinVersion, tc.want.CipherSuites, tc.reason)
			}
		})
	}
}
