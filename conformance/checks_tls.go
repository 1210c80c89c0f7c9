// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"time"
)

// soon is how long a certificate should be good for at least.
const soon = 7 * 24 * time.Hour

var secureChecks = []Check{
	{
		ID: "tls.used", Level: Must, Protocol: REST,
		Rule:   "An extension serves HTTPS: over REST, Cluster API and the gateway call only HTTPS URLs.",
		Source: runtimeClient + "urlForExtension",
		run: func(_ context.Context, s *session, v *verdict) {
			if !s.endpoint.HasTLS() {
				v.findings = append(v.findings, Finding{
					Sent: "HTTP without TLS", Got: "an answer",
					Problem: "there is no TLS; leave the check out with --skip tls.used while you develop",
				})
			}
		},
	},
	{
		ID: "tls.certificate", Level: Must,
		Rule: "The certificate of the extension is for the name in the URL, is valid now, and is signed by a CA that the " +
			"caller trusts.",
		Source: "Cluster API, api/runtime/v1beta2/extensionconfig_types.go, ClientConfig.CABundle",
		run: func(_ context.Context, s *session, v *verdict) {
			if !s.hasTLS(v) || s.trust == nil {
				return
			}
			v.findings = append(v.findings, s.handshakeFinding(s.trust.Error()))
		},
	},
	{
		ID: "tls.version", Level: Must,
		Rule:   "The extension speaks TLS 1.2 or later.",
		Source: runtimeClient + "getHTTPClient: the oldest version of Go's client",
		run: func(_ context.Context, s *session, v *verdict) {
			if !s.hasTLS(v) || s.old == nil {
				return
			}
			v.findings = append(v.findings,
				s.handshakeFinding("it refuses TLS 1.2 and TLS 1.3, and agrees to "+tls.VersionName(s.state.Version)))
		},
	},
	{
		ID: "tls.old-versions", Level: Should,
		Rule:   "The extension does not speak TLS 1.1 or older.",
		Source: "RFC 8996",
		run: func(ctx context.Context, s *session, v *verdict) {
			if !s.hasTLS(v) {
				return
			}
			config := s.endpoint.tlsConfig()
			config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 // this is what is tested
			config.InsecureSkipVerify = true                                          // nothing is sent
			if state, err := s.endpoint.handshake(ctx, config); err == nil {
				v.findings = append(v.findings, s.handshakeFinding("it agrees to "+tls.VersionName(state.Version)))
			}
		},
	},
	{
		ID: "tls.expiry", Level: Should,
		Rule:   "The certificate is valid for at least another seven days.",
		Source: "docs/checks.md",
		run: func(_ context.Context, s *session, v *verdict) {
			if !s.hasTLS(v) || len(s.state.PeerCertificates) == 0 {
				return
			}
			end := s.state.PeerCertificates[0].NotAfter
			if left := time.Until(end); left > 0 && left < soon {
				v.findings = append(v.findings,
					s.handshakeFinding("it expires soon, at "+end.UTC().Format(time.RFC3339)))
			}
		},
	},
}

func (s *session) hasTLS(v *verdict) bool {
	if !s.endpoint.HasTLS() {
		v.skipf("there is no TLS")
	}
	return s.endpoint.HasTLS()
}

func (s *session) handshakeFinding(problem string) Finding {
	got := tls.VersionName(s.state.Version)
	if len(s.state.PeerCertificates) > 0 {
		c := s.state.PeerCertificates[0]
		got += ", certificate of " + c.Subject.String() + ", valid from " + c.NotBefore.UTC().Format(time.RFC3339) +
			" to " + c.NotAfter.UTC().Format(time.RFC3339)
	}
	return Finding{Sent: "a TLS handshake for the name " + s.endpoint.Host, Got: got, Problem: problem}
}
