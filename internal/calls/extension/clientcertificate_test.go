// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Extensions that request a client certificate get the one that is current when the connection is made; others get
// none.
func TestClientCertificate(t *testing.T) {
	a := newAuthority(t)
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM(a.PEM)
	first, second := issue(t, a, time.Now().Add(time.Hour)), issue(t, a, time.Now().Add(time.Hour))

	for name, tc := range map[string]struct {
		protocol registry.Protocol
		version  uint16
		asks     tls.ClientAuthType
		refusal  string // of a gateway that has no certificate
	}{
		"JSON, TLS 1.2":       {registry.REST, tls.VersionTLS12, tls.RequireAndVerifyClientCert, "TLS handshake refused: handshake failure"},
		"JSON, TLS 1.3":       {registry.REST, tls.VersionTLS13, tls.RequireAndVerifyClientCert, "TLS handshake refused: certificate required"},
		"gRPC, TLS 1.2":       {registry.GRPC, tls.VersionTLS12, tls.RequireAndVerifyClientCert, "TLS handshake refused: handshake failure"},
		"gRPC, TLS 1.3":       {registry.GRPC, tls.VersionTLS13, tls.RequireAndVerifyClientCert, "TLS handshake refused: certificate required"},
		"JSON, does not ask":  {registry.REST, tls.VersionTLS13, tls.NoClientCert, ""},
		"gRPC, does not ask":  {registry.GRPC, tls.VersionTLS13, tls.NoClientCert, ""},
		"gRPC, asks politely": {registry.GRPC, tls.VersionTLS13, tls.RequestClientCert, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Pointer[[]*x509.Certificate]
			secure := func(c *tls.Config) {
				c.ClientAuth, c.ClientCAs, c.MinVersion, c.MaxVersion = tc.asks, callers, tc.version, tc.version
			}
			var cc registry.ClientConfig
			if tc.protocol == registry.GRPC {
				config := &tls.Config{Certificates: []tls.Certificate{issue(t, a, time.Now().Add(time.Hour))}}
				secure(config)
				l := listen(t, "tcp", "127.0.0.1:0")
				serveGRPC(t, l, &author{create: func(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
					p, _ := peer.FromContext(ctx)
					shown := p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates
					seen.Store(&shown)
					return fine(), nil
				}}, nil, grpc.Creds(credentials.NewTLS(config)))
				cc = registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://" + l.Addr().String(), CABundle: a.PEM}
			} else {
				cc = newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
					seen.Store(&req.TLS.PeerCertificates)
					answer(success)(w, req)
				}, func(s *httptest.Server) { secure(s.TLS) }).cc
			}

			call := func(config Config) error {
				p := NewProtocols(withHooks(config))
				defer p.Close()
				_, err := p.Call(t.Context(), newCall(cc))
				return err
			}
			err := call(Config{})
			if tc.refusal == "" && err != nil {
				t.Fatalf("without a certificate: %v", err)
			}
			if tc.refusal != "" {
				wantError(t, "the extension asks for a certificate", nil, err, hook.Unreachable, `handler "v.acme": call extension: `+tc.refusal)
			}

			var current atomic.Pointer[tls.Certificate]
			config := Config{ClientCertificate: func() (*tls.Certificate, error) { return current.Load(), nil }}
			for _, shown := range []*tls.Certificate{&first, &second} {
				current.Store(shown)
				if err := call(config); err != nil {
					t.Fatalf("with a certificate: %v", err)
				}
				got := *seen.Load()
				if tc.asks == tls.NoClientCert {
					if len(got) > 0 {
						t.Error("the extension saw a certificate that it did not ask for")
					}
				} else if len(got) == 0 || !slices.Equal(got[0].Raw, shown.Certificate[0]) {
					t.Errorf("the extension saw %d certificates, or another one", len(got))
				}
			}
		})
	}
}
