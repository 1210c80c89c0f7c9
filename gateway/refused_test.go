// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// refusing is a gRPC extension that answers with a code. It counts the calls.
func refusing(t *testing.T, f *fixture, code codes.Code) *atomic.Int32 {
	t.Helper()
	calls := &atomic.Int32{}
	s := stubs{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
		calls.Add(1)
		return nil, status.Error(code, "cluster: no name")
	}}
	f.registerGRPC(t, func(server *grpc.Server) { hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, s) },
		handlerOf("c", "BeforeClusterCreate", hook.Fail))
	return calls
}

// TestRefusedBehindASidecar checks that INVALID_ARGUMENT of an extension means the same with a sidecar as without: it
// finds fault with the request, so that it says nothing about the extension, and no circuit opens.
func TestRefusedBehindASidecar(t *testing.T) {
	sidecar, hub := newFixtureFor(t, registry.NewSidecar(), nil, nil), newFixture(t, nil)
	calls := refusing(t, sidecar, codes.InvalidArgument)
	hub.registerGateway(t, "acme", sidecar.rest)
	h := hookOf(t, "BeforeClusterCreate")
	const text = `handler "c": call extension: answered InvalidArgument`

	resp := sidecar.post(t, h.Path("")+"/c", createBody)
	if resp.code != http.StatusBadRequest || resp.header.Get(ErrorKindHeader) != "BadResponse" || !strings.Contains(string(resp.body), `answered InvalidArgument`) {
		t.Errorf("the sidecar answers %s, kind %s: %s", resp.status, resp.header.Get(ErrorKindHeader), resp.body)
	}
	_, err := sidecar.callGRPC(t, h, &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "c", Cluster: clusterIn("n")})
	if kind, message := kindOver(err); status.Code(err) != codes.InvalidArgument || kind != "BadResponse" || message != text {
		t.Errorf("the sidecar answers over gRPC: %v, kind %s", err, kind)
	}
	const times = 10 // twice as many as open a circuit
	for range times {
		resp = hub.post(t, h.Path("")+"/c.acme", createBody)
		if resp.code != http.StatusBadGateway || resp.header.Get(ErrorKindHeader) != "BadResponse" || !strings.Contains(string(resp.body), "answered InvalidArgument") {
			t.Fatalf("the hub answers %s, kind %s: %s", resp.status, resp.header.Get(ErrorKindHeader), resp.body)
		}
	}
	if got := calls.Load(); got != times+2 {
		t.Errorf("the extension got %d calls, want %d: a circuit has opened", got, times+2)
	}
}

// TestRefusedElsewhere checks that other errors behind a sidecar, and this one without a sidecar, keep their codes.
func TestRefusedElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		registry *registry.Registry
		code     codes.Code
		handler  string
	}{
		"OtherCode": {registry.NewSidecar(), codes.Internal, "c"},
		"NoSidecar": {registry.New(), codes.InvalidArgument, "c.acme"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureFor(t, tt.registry, nil, nil)
			refusing(t, f, tt.code)
			resp := f.post(t, hookOf(t, "BeforeClusterCreate").Path("")+"/"+tt.handler, createBody)
			if resp.code != http.StatusBadGateway || resp.header.Get(ErrorKindHeader) != "BadResponse" {
				t.Errorf("got %s, kind %s: %s", resp.status, resp.header.Get(ErrorKindHeader), resp.body)
			}
		})
	}
}
