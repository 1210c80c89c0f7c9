// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// benchmarkSizes lists sizes of the embedded Cluster. Answers are small, as for lifecycle hooks.
var benchmarkSizes = []struct {
	name string
	size int
}{{"S", 4 << 10}, {"M", 250 << 10}}

func benchmarkCall(cc registry.ClientConfig, size int) Call {
	c := newCall(cc)
	c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw = []byte(`{"kind":"Cluster","x":"` + strings.Repeat("x", size) + `"}`)
	return c
}

// BenchmarkRESTCall makes calls at the same time, next to a plain http.Client that sends and reads the same bytes.
func BenchmarkRESTCall(b *testing.B) {
	for _, h2 := range []bool{false, true} {
		for _, s := range benchmarkSizes {
			srv := newServer(b, newAuthority(b), answer(success), func(s *httptest.Server) { s.EnableHTTP2 = true })
			name := fmt.Sprintf("%s/%s", map[bool]string{false: "HTTP1", true: "HTTP2"}[h2], s.name)
			b.Run("REST/"+name, func(b *testing.B) {
				r := newREST(b, Config{PreferHTTP2: h2})
				b.ReportAllocs()
				b.SetBytes(int64(s.size))
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					c := benchmarkCall(srv.cc, s.size)
					for pb.Next() {
						if _, err := r.Call(b.Context(), c); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
			b.Run("Client/"+name, func(b *testing.B) { benchmarkClient(b, srv, s.size, h2) })
		}
	}
}

func benchmarkClient(b *testing.B, srv *server, size int, h2 bool) {
	b.Helper()
	r := NewREST(withHooks(Config{}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(srv.cc.CABundle)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2, MaxIdleConnsPerHost: limits.IdleConnections,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	text, err := r.config.Codec.Encode(benchmarkCall(srv.cc, size).Request)
	if err != nil {
		b.Fatal(err)
	}
	body := text.Bytes()
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(srv.cc.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

// BenchmarkRoute finds the connections of an extension among 2,000.
func BenchmarkRoute(b *testing.B) {
	r := newREST(b, Config{})
	bundle := newAuthority(b).PEM
	var cc registry.ClientConfig
	for i := range 2000 {
		cc = registry.ClientConfig{URL: fmt.Sprintf("https://ext-%d.example", i), CABundle: bundle}
		if _, err := r.routes.get(cc); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.routes.get(cc); err != nil {
			b.Fatal(err)
		}
	}
}
