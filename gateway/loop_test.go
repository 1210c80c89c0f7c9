// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/pem"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/via"
	"github.com/hookgate/hookgate/registry"
)

// address returns how another gateway reaches f over a protocol.
func (f *fixture) address(t *testing.T, p registry.Protocol) registry.ClientConfig {
	t.Helper()
	if p == registry.GRPC {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = f.server.Serve(l) }() // until the fixture stops it
		return registry.ClientConfig{Protocol: p, URL: "grpc://" + l.Addr().String()}
	}
	return registry.ClientConfig{
		Protocol: p, URL: f.rest.URL,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.rest.Certificate().Raw}),
	}
}

// leadTo registers a handler for BeforeClusterCreate of f that is the gateway at cc.
func (f *fixture) leadTo(t *testing.T, name string, cc registry.ClientConfig) {
	t.Helper()
	reg := registrationOf(name, handlerOf("beforeclustercreate", "BeforeClusterCreate", hook.Ignore))
	reg.ClientConfig = cc
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
}

// calls returns how many calls f has received.
func (f *fixture) calls(t *testing.T) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var n float64
	for _, family := range families {
		if family.GetName() == "hookgate_requests_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

var protocols = map[string]registry.Protocol{"REST": registry.REST, "GRPC": registry.GRPC}

// A gateway that is registered with itself, even twice and with the failure policy Ignore, refuses a call at its first
// repetition: the caller's call reaches it once, and once for each registration.
func TestSelfLoop(t *testing.T) {
	for name, south := range protocols {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			cc := f.address(t, south)
			f.leadTo(t, "loop1", cc)
			f.leadTo(t, "loop2", cc)
			const back = `the call has come back to this gateway by way of \"beforeclustercreate.loop`
			want := []string{back + `1\": remove`, back + `2\": remove`}
			for range 2 {
				resp := f.post(t, createPath, createBody)
				if resp.code != http.StatusLoopDetected || resp.header.Get(ErrorKindHeader) != "Loop" {
					t.Errorf("got %s of kind %s: %s", resp.status, resp.header.Get(ErrorKindHeader), resp.body)
				}
				for _, w := range want {
					if !strings.Contains(string(resp.body), w) {
						t.Errorf("got %s\nwant %s", resp.body, w)
					}
				}
			}
			client := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn)
			_, err := client.BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)},
			})
			st := status.Convert(err)
			if st.Code() != hook.Loop.GRPCCode() || len(st.Details()) != 1 ||
				st.Details()[0].(*errdetails.ErrorInfo).GetReason() != "Loop" {
				t.Errorf("gRPC: got %v", err)
			}
			f.rest.Close() // all calls are counted when they have ended
			f.stop()
			if got := f.calls(t); got != 9 {
				t.Errorf("3 calls with 2 registrations became %g, want 9", got)
			}
		})
	}
}

// Two gateways that lead to each other pass a call on once each way.
func TestLoopOfTwo(t *testing.T) {
	for name, south := range protocols {
		t.Run(name, func(t *testing.T) {
			a, b := newFixture(t, nil), newFixture(t, nil)
			a.leadTo(t, "b", b.address(t, south))
			b.leadTo(t, "a", a.address(t, south))
			resp := a.post(t, createPath, createBody)
			want := `handler \"beforeclustercreate.b\": call extension: ` +
				`handler \"beforeclustercreate.a\": call extension: the call has come back to this gateway ` +
				`by way of \"beforeclustercreate.b\", \"beforeclustercreate.a\": remove the ExtensionConfig that leads back`
			if resp.code != http.StatusLoopDetected || !strings.Contains(string(resp.body), want) {
				t.Errorf("got %s: %s\nwant %s", resp.status, resp.body, want)
			}
			a.rest.Close()
			b.rest.Close()
			a.stop()
			b.stop()
			if got := a.calls(t) + b.calls(t); got != 3 {
				t.Errorf("one call became %g, want 3", got)
			}
		})
	}
}

// Whatever ids a way has, it ends.
func TestHops(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if hops := strings.Count(r.Header.Get(via.Header), ","); hops != 8 {
			t.Errorf("the extension sees %d gateways before the last one, want 8", hops)
		}
		_, _ = w.Write([]byte(`{"status":"Success","retryAfterSeconds":0}`))
	})
	var way via.Way
	for hops := range 10 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath,
			strings.NewReader(createBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(via.Header, string(way))
		way = way.Next(via.NewGateway(), "h.x")
		if hops < 8 {
			continue
		}
		resp, err := f.rest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if want := map[int]int{8: http.StatusOK, 9: http.StatusLoopDetected}[hops]; resp.StatusCode != want {
			t.Errorf("after %d gateways: got %s, want %d", hops, resp.Status, want)
		}
	}
}

// A gateway refuses to be its own extension, at whatever address.
func TestDiscoveryOfOneselfIsRefused(t *testing.T) {
	for name, south := range protocols {
		t.Run(name, func(t *testing.T) {
			f, other := newFixture(t, nil), newFixture(t, nil)
			f.registry.SetReady()
			_, err := f.transport.Discover(t.Context(), f.address(t, south))
			const want = "discover handlers: the request has come back to the gateway that sent it: " +
				"let the ExtensionConfig name the extension itself"
			if hook.KindOf(err) != hook.Loop || err.Error() != want {
				t.Errorf("got  %v (%s)\nwant %s", err, hook.KindOf(err), want)
			}
			if _, err := other.transport.Discover(t.Context(), f.address(t, south)); err != nil {
				t.Errorf("another gateway: %v", err)
			}
		})
	}
}
