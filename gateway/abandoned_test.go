// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// hung is a set of extensions that answer only when their caller has left.
type hung struct{ began, ended chan struct{} }

func (h hung) wait(ctx context.Context) {
	h.began <- struct{}{}
	<-ctx.Done()
	h.ended <- struct{}{}
}

// register starts an extension over a protocol and registers its handler for BeforeClusterCreate.
func (h hung) register(t *testing.T, f *fixture, name string, p registry.Protocol) {
	t.Helper()
	handler := handlerOf("v", "BeforeClusterCreate", hook.Fail)
	handler.Timeout = 30 * time.Second
	reg := registrationOf(name, handler)
	if p == registry.GRPC {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, stubs{create: func(
			ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest,
		) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			h.wait(ctx)
			return nil, ctx.Err()
		}})
		go func() { _ = server.Serve(l) }() // until it is stopped
		t.Cleanup(server.Stop)
		reg.ClientConfig = registry.ClientConfig{Protocol: p, URL: "grpc://" + l.Addr().String()}
	} else {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			h.wait(r.Context())
		}))
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		t.Cleanup(server.Close)
		reg.ClientConfig = registry.ClientConfig{URL: server.URL, CABundle: pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	}
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
}

// When a caller leaves or its deadline ends, every call that the gateway made for it ends: from both fronts, through
// the fan-out, over both transports.
func TestAbandonedCallsHaveNoChildren(t *testing.T) {
	byREST := func(ctx context.Context, f *fixture, query string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.rest.URL+createPath+query,
			strings.NewReader(createBody))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := f.rest.Client().Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	byGRPC := func(ctx context.Context, f *fixture) {
		_, _ = hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(ctx,
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)}})
	}
	const deadline = 8 * time.Second // in which all four are called
	for name, call := range map[string]func(ctx context.Context, leave <-chan struct{}, f *fixture){
		"RESTLeaves": func(ctx context.Context, leave <-chan struct{}, f *fixture) {
			ctx, cancel := context.WithCancel(ctx)
			go func() { <-leave; cancel() }()
			byREST(ctx, f, "")
		},
		"RESTDeadline": func(ctx context.Context, _ <-chan struct{}, f *fixture) {
			byREST(ctx, f, "?timeout="+deadline.String())
		},
		"GRPCLeaves": func(ctx context.Context, leave <-chan struct{}, f *fixture) {
			ctx, cancel := context.WithCancel(ctx)
			go func() { <-leave; cancel() }()
			byGRPC(ctx, f)
		},
		"GRPCDeadline": func(ctx context.Context, _ <-chan struct{}, f *fixture) {
			ctx, cancel := context.WithTimeout(ctx, deadline)
			defer cancel()
			byGRPC(ctx, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			h := hung{make(chan struct{}, 4), make(chan struct{}, 4)}
			for extension, p := range map[string]registry.Protocol{
				"a": registry.REST, "b": registry.REST, "c": registry.GRPC, "d": registry.GRPC,
			} {
				h.register(t, f, extension, p)
			}
			leave, returned := make(chan struct{}), make(chan struct{})
			go func() { call(t.Context(), leave, f); close(returned) }()
			late := time.After(time.Minute)
			await := func(what string, c <-chan struct{}, n int) {
				t.Helper()
				for i := range n {
					select {
					case <-c:
					case <-late:
						t.Fatalf("%d of %d extensions %s", i, n, what)
					}
				}
			}
			await("were called", h.began, 4)
			close(leave)
			await("saw the end of the call", h.ended, 4)
			<-returned
			f.rest.Close() // over HTTP/2, it does not wait for the handlers of requests that were given up
			f.stop()
			for gaugeOf(t, f, "hookgate_handler_calls_in_flight") != 0 {
				select {
				case <-time.After(time.Millisecond):
				case <-late:
					t.Fatal("calls are still in flight")
				}
			}
		})
	}
}

// gaugeOf returns the sum of a gauge over all its labels.
func gaugeOf(t *testing.T, f *fixture, name string) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
