// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/via"
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
	f.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
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
				"the ExtensionConfig must have the address of the extension itself"
			if hook.KindOf(err) != hook.Loop || err.Error() != want {
				t.Errorf("got  %v (%s)\nwant %s", err, hook.KindOf(err), want)
			}
			if _, err := other.transport.Discover(t.Context(), f.address(t, south)); err != nil {
				t.Errorf("another gateway: %v", err)
			}
		})
	}
}

// rediscover registers the gateways in cc as a source does, and returns the names of the handlers that are registered.
func (f *fixture) rediscover(t *testing.T, cc map[string]registry.ClientConfig) []string {
	t.Helper()
	for name, client := range cc {
		found, err := f.transport.Discover(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.registry.Apply(registry.Registration{Name: name, ClientConfig: client, Handlers: found.Handlers}); err != nil {
			t.Fatal(err)
		}
	}
	patches := hookOf(t, "GeneratePatches")
	var names []string
	for _, e := range f.registry.Snapshot().Handlers(patches.GroupHook()) {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// handlers returns those of an answer to Discovery.
func (a answered) handlers(t *testing.T) []*hooksv1alpha1.ExtensionHandler {
	t.Helper()
	m := &hooksv1alpha1.DiscoveryResponse{}
	if err := mandated.Decode(a.body, m); err != nil || len(m.GetHandlers()) == 0 {
		t.Fatalf("%s: %v", a.body, err)
	}
	return m.GetHandlers()
}

// Gateways that register each other, in twos and in a ring, learn each handler once by each way, however often they
// discover each other. A caller that is no gateway sees no more than the handlers.
func TestLoopsOfDiscoveryEnd(t *testing.T) {
	patch := func(f *fixture, extension string) {
		if err := f.registry.Apply(registrationOf(extension, handlerOf("patch", "GeneratePatches", hook.Fail))); err != nil {
			t.Fatal(err)
		}
		f.registry.SetReady()
	}
	for name, south := range protocols {
		t.Run(name, func(t *testing.T) {
			a, b, c := newFixture(t, nil), newFixture(t, nil), newFixture(t, nil)
			patch(a, "own-a")
			patch(b, "own-b")
			patch(c, "own-c")
			toA, toB, toC := a.address(t, south), b.address(t, south), c.address(t, south)
			for range 5 {
				got := a.rediscover(t, map[string]registry.ClientConfig{"b": toB})
				want := []string{"patch--own-b.b", "patch.own-a"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("in twos: -want +got\n%s", diff)
				}
				b.rediscover(t, map[string]registry.ClientConfig{"a": toA})
			}
			b.registry.Remove("a")
			var got []string
			for range 5 {
				got = a.rediscover(t, map[string]registry.ClientConfig{"b": toB})
				b.rediscover(t, map[string]registry.ClientConfig{"c": toC})
				c.rediscover(t, map[string]registry.ClientConfig{"a": toA})
			}
			want := []string{"patch--own-b.b", registry.Label("patch--own-c.c") + ".b", "patch.own-a"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in a ring: -want +got\n%s", diff)
			}
			for _, h := range a.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", "{}").handlers(t) {
				if len(h.UnknownMembers) > 0 {
					t.Errorf("Cluster API sees %v", h)
				}
			}
		})
	}
}

// Without a common id, gateways still see each other's handlers only through limits.GatewayHops of them.
func TestLoopsOfStrangersEnd(t *testing.T) {
	f := newFixture(t, nil)
	for n := range limits.GatewayHops + 1 {
		h := handlerOf(fmt.Sprintf("patch%d", n), "GeneratePatches", hook.Fail)
		var path via.Path
		for range n {
			path = path.Through(via.NewGateway())
		}
		h.Gateways = string(path)
		if err := f.registry.Apply(registrationOf(fmt.Sprintf("own%d", n), h)); err != nil {
			t.Fatal(err)
		}
	}
	f.registry.SetReady()
	found, err := newFixture(t, nil).transport.Discover(t.Context(), f.address(t, registry.REST))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, h := range found.Handlers {
		if h.Gateways != "" {
			most = max(most, strings.Count(h.Gateways, ",")+1)
		}
	}
	if most != limits.GatewayHops {
		t.Errorf("the longest way to a handler leads through %d gateways, want %d", most, limits.GatewayHops)
	}
}

// What an extension says about gateways is checked.
func TestDiscoveryChecksGateways(t *testing.T) {
	f := newFixture(t, nil)
	for raw, ok := range map[string]bool{`"a,b"`: true, `"a b"`: false, `["a"]`: false, `""`: true} {
		server := f.register(t, "GeneratePatches", hook.Fail, time.Second, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"status":"Success","handlers":[{"name":"h","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"},"hookgateVia":%s}]}`, raw)
		})
		_, err := f.transport.Discover(t.Context(), registry.ClientConfig{
			URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		})
		const want = "discover handlers: answer: handlers[0].hookgateVia: is not a list of the ids of gateways"
		if ok != (err == nil) || err != nil && (err.Error() != want || hook.KindOf(err) != hook.BadResponse) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}
