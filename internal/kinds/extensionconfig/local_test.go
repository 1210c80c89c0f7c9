// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"testing"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
)

// A directory may register gRPC extensions by their URL. A cluster may not: its schema requires https.
func TestURLsOfADirectory(t *testing.T) {
	pair := certificates.New(t)
	for name, tc := range map[string]struct {
		reason   string
		url      string
		ca       []byte
		protocol registry.Protocol
		want     string
	}{
		"https":     {reason: "JSON, as everywhere", url: "https://acme.example/x", protocol: registry.REST},
		"grpc":      {reason: "beside the gateway", url: "grpc://127.0.0.1:9090", protocol: registry.GRPC},
		"grpc IPv6": {reason: "beside the gateway", url: "grpc://[::1]:9090", protocol: registry.GRPC},
		"grpcs":     {reason: "elsewhere", url: "grpcs://acme.example:9090", ca: pair.CAPEM, protocol: registry.GRPC},
		"unix":      {reason: "a socket in a volume", url: "unix:///run/acme.sock", protocol: registry.GRPC},
		"grpc away": {reason: "clusters are not for everyone to read", url: "grpc://acme.example:9090", want: `spec.clientConfig.url: Invalid value: "grpc://acme.example:9090": must be on loopback, because grpc:// has no TLS; use grpcs://`},
		"no port":   {reason: "there is no default", url: "grpc://127.0.0.1", want: `spec.clientConfig.url: Invalid value: "grpc://127.0.0.1": must have a port`},
		"path":      {reason: "gRPC has none", url: "grpcs://acme.example:9090/x", want: `spec.clientConfig.url: Invalid value: "grpcs://acme.example:9090/x": must not have a path: gRPC derives the paths from its services`},
		"relative":  {reason: "to what would it be", url: "unix://acme.sock", want: `spec.clientConfig.url: Invalid value: "unix://acme.sock": must be unix:// and the absolute path of a socket, for example unix:///run/extension.sock`},
		"unused CA": {reason: "a socket has no certificate", url: "unix:///run/acme.sock", ca: pair.CAPEM, want: `spec.clientConfig.caBundle: Forbidden: there is no TLS with unix://`},
		"not a CA":  {reason: "no server would be trusted", url: "grpcs://acme.example:9090", ca: []byte("x"), want: `spec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM`},
		"http":      {reason: "no TLS", url: "http://acme.example", want: `spec.clientConfig.url: Invalid value: "http://acme.example": must begin with https://, not with "http"`},
	} {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{}
			config.Name = "acme"
			config.Spec.ClientConfig = runtimev1.ClientConfig{URL: tc.url, CABundle: tc.ca}
			x, errs := convertWith(config, convertLocalClientConfig)
			if tc.want != "" {
				if len(errs) != 1 || errs[0].Error() != tc.want {
					t.Errorf("%s: got %v, want %s", tc.reason, errs, tc.want)
				}
				return
			}
			if len(errs) > 0 || x.ClientConfig.Protocol != tc.protocol || x.ClientConfig.URL != tc.url {
				t.Errorf("%s: got %+v, %v", tc.reason, x.ClientConfig, errs)
			}
			if _, errs := Convert(config); (len(errs) == 0) != (tc.protocol == registry.REST) {
				t.Errorf("in a cluster: %v", errs)
			}
		})
	}
}
