// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// prober is REST or GRPC.
type prober interface {
	Probe(ctx context.Context, cc registry.ClientConfig, fresh bool) (bool, error)
}

func wantProbe(t *testing.T, p prober, cc registry.ClientConfig, fresh, looked bool, kind hook.Kind, text string) {
	t.Helper()
	got, err := p.Probe(t.Context(), cc, fresh)
	if got != looked || hook.KindOf(err) != kind || err != nil && !strings.Contains(err.Error(), text) || err == nil && text != "" {
		t.Errorf("got %t, %v; want %t, an error of kind %s: %s", got, err, looked, kind, text)
	}
}

// A probe connects, with TLS, if there is no idle connection; calls use what it has connected, and no hook is called.
func TestProbeOfREST(t *testing.T) {
	ca := newAuthority(t)
	calls := 0
	s := newServer(t, ca, func(w http.ResponseWriter, r *http.Request) {
		calls++
		answer(`{"status":"Success"}`)(w, r)
	}, nil)
	r := newREST(t, Config{})
	wantProbe(t, r, s.cc, false, true, 0, "")
	wantProbe(t, r, s.cc, false, false, 0, "") // the connection is idle
	wantProbe(t, r, s.cc, true, true, 0, "")
	if s.await(t, http.StateNew, 2); calls != 0 {
		t.Errorf("%d hooks were called", calls)
	}
	mustCall(t, r, s.cc)
	if n := s.seen(http.StateNew); n != 2 {
		t.Errorf("%d connections, want those of the probes alone", n)
	}
	s.CloseClientConnections()
	s.await(t, http.StateClosed, 2)
	wantProbe(t, r, s.cc, false, true, 0, "") // both are closed, and another one is made

	s.Close()
	wantProbe(t, r, s.cc, false, true, hook.Unreachable, "connect: connection refused")
}

// A server that accepts connections and says nothing is as good as gone.
func TestProbeOfAServerThatHangs(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	t.Cleanup(func() { _ = l.Close() }) // the kernel accepts
	r := newREST(t, Config{})
	wantProbe(t, r, registry.ClientConfig{URL: "https://" + l.Addr().String()}, false, true, hook.Timeout, "connect: no answer within 2s")
}

// A server that speaks HTTP/2 alone is probed, too.
func TestProbeOfHTTP2(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(`{"status":"Success"}`), func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.TLS.NextProtos = []string{"h2"}
	})
	r := newREST(t, Config{PreferHTTP2: true})
	wantProbe(t, r, s.cc, false, true, 0, "")
	s.Close()
	wantProbe(t, r, s.cc, false, true, hook.Unreachable, "connect: connection refused")
}

// Over gRPC, the standard health service is asked; a server without one answers, too.
func TestProbeOfGRPC(t *testing.T) {
	ca := newAuthority(t)
	g := newGRPC(t, Config{})
	wantProbe(t, g, newAuthor(t, ca, &author{}, nil), false, true, 0, "")

	serving := health.NewServer()
	l := listen(t, "tcp", "127.0.0.1:0")
	server := serveGRPC(t, l, &author{}, func(s *grpc.Server) { healthv1.RegisterHealthServer(s, serving) })
	cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "grpc://" + l.Addr().String()}
	wantProbe(t, g, cc, false, true, 0, "")
	serving.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	process.Eventually(t, "the server says that it is not serving", func() bool {
		_, err := g.Probe(t.Context(), cc, false)
		return hook.KindOf(err) == hook.Unreachable
	})
	serving.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	process.Eventually(t, "the server serves again", func() bool {
		_, err := g.Probe(t.Context(), cc, false)
		return err == nil
	})
	server.Stop()
	process.Eventually(t, "the server is gone", func() bool {
		_, err := g.Probe(t.Context(), cc, false)
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	serveGRPC(t, listen(t, "tcp", l.Addr().String()), &author{}, nil)
	process.Eventually(t, "the server is back", func() bool {
		_, err := g.Probe(t.Context(), cc, false)
		return err == nil
	})
}
