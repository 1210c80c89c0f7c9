// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// stubs is an extension of generated stubs.
type stubs struct {
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	create func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error)
}

func (s stubs) BeforeClusterCreate(ctx context.Context, in *hooksv1alpha1.BeforeClusterCreateRequest) (
	*hooksv1alpha1.BeforeClusterCreateResponse, error,
) {
	return s.create(ctx, in)
}

// registerStubs starts an extension that speaks gRPC and registers one handler of it, v.acme.
func (f *fixture) registerStubs(t testing.TB, policy hook.FailurePolicy, timeout time.Duration, s stubs) *grpc.Server {
	t.Helper()
	h := handlerOf("v", "BeforeClusterCreate", policy)
	h.Timeout, h.ClusterAPIVersion = timeout, f.understands
	return f.registerGRPC(t, func(server *grpc.Server) { hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, s) }, h)
}

// registerGRPC starts an extension that speaks gRPC and registers handlers of it, as those of acme.
func (f *fixture) registerGRPC(t testing.TB, serve func(*grpc.Server), handlers ...registry.Handler) *grpc.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(BodyBytes), grpc.MaxSendMsgSize(64<<20))
	serve(server)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	reg := registrationOf("acme", handlers...)
	reg.ClientConfig = registry.ClientConfig{Protocol: registry.GRPC, URL: "grpc://" + l.Addr().String()}
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
	return server
}

// The matrix of TestMatrix with an extension that speaks gRPC: what it does comes out as it does of one that speaks
// JSON.
func TestMatrixSouthGRPC(t *testing.T) {
	says := func(m *hooksv1alpha1.BeforeClusterCreateResponse, err error) stubs {
		return stubs{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			return m, err
		}}
	}
	for name, tc := range map[string]struct {
		stubs   stubs
		stopped bool
		kind    hook.Kind
		message string
		answer  reply
	}{
		"Success": {stubs: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "hold", RetryAfterSeconds: 5}, nil), answer: reply{status: "Success", message: "hold", retry: 5}},
		"Failure": {stubs: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "no"}, nil), answer: reply{status: "Failure", message: "no"}},
		"Nothing": {stubs: stubs{create: func(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, kind: hook.Timeout, message: "no answer within its timeout of 200ms"},
		"Throws":      {stubs: says(nil, errors.New("secret stack trace")), kind: hook.BadResponse, message: "answered Unknown"},
		"EmptyStatus": {stubs: says(&hooksv1alpha1.BeforeClusterCreateResponse{RetryAfterSeconds: 30}, nil), kind: hook.BadResponse},
		"NotJSON": {stubs: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, UnknownMembers: map[string]*hooksv1alpha1.JSON{
			"hint": {Raw: []byte(`{"half":`)},
		}}, nil), kind: hook.BadResponse},
		"Oversized": {stubs: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: strings.Repeat(" ", 30<<20)}, nil), kind: hook.BadResponse, message: "answer is larger than 20971520 bytes"},
		"Refused":   {stopped: true, kind: hook.Unreachable, message: "connection refused"},
	} {
		for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
			for objects, understands := range understandings {
				t.Run(name+"/"+string(policy)+"/"+objects, func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, nil)
					f.understands = understands
					timeout := 20 * time.Second
					if name == "Nothing" {
						timeout = 200 * time.Millisecond
					}
					if f.registerStubs(t, policy, timeout, tc.stubs); tc.stopped {
						f.refuseConnections(t)
					}
					f.check(t, policy, tc.kind, tc.message, tc.answer)
				})
			}
		}
	}
}
