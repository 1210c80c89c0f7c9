// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// What an extension does to a call opens its circuit, or not, whichever protocol it speaks.
func TestCircuitOfBothTransports(t *testing.T) {
	type response = *hooksv1alpha1.BeforeClusterCreateResponse
	answers := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	says := func(m response, err error) func(context.Context) (response, error) {
		return func(context.Context) (response, error) { return m, err }
	}
	const head = `{"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`
	for name, tc := range map[string]struct {
		rest    http.HandlerFunc
		grpc    func(context.Context) (response, error)
		stopped bool
		opens   bool
		kind    string
	}{
		"Success":     {rest: answers(200, head+`"status":"Success"}`), grpc: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success}, nil)},
		"Failure":     {rest: answers(200, head+`"status":"Failure","message":"no"}`), grpc: says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "no"}, nil)},
		"BadRequest":  {rest: answers(400, ""), grpc: says(nil, status.Error(codes.InvalidArgument, "no")), kind: "BadResponse"},
		"ServerError": {rest: answers(500, ""), grpc: says(nil, status.Error(codes.Internal, "no")), opens: true, kind: "BadResponse"},
		"Garbage":     {rest: answers(200, "<html>"), grpc: says(&hooksv1alpha1.BeforeClusterCreateResponse{}, nil), opens: true, kind: "BadResponse"},
		"Hangs": {
			rest: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				<-req.Context().Done()
			},
			grpc:  func(ctx context.Context) (response, error) { <-ctx.Done(); return nil, ctx.Err() },
			opens: true, kind: "Timeout",
		},
		"Stopped": {rest: answers(200, ""), grpc: says(nil, nil), stopped: true, opens: true, kind: "Unreachable"},
	} {
		for _, protocol := range []registry.Protocol{registry.REST, registry.GRPC} {
			t.Run(name+string(protocol), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, nil)
				var calls atomic.Int32
				timeout := 20 * time.Second
				if name == "Hangs" {
					timeout = 500 * time.Millisecond
				}
				if protocol == registry.REST {
					f.register(t, "BeforeClusterCreate", hook.Fail, timeout, func(w http.ResponseWriter, req *http.Request) {
						calls.Add(1)
						tc.rest(w, req)
					})
				} else {
					f.registerStubs(t, hook.Fail, timeout, stubs{create: func(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (response, error) {
						calls.Add(1)
						return tc.grpc(ctx)
					}})
				}
				if tc.stopped {
					f.refuseConnections(t)
				}
				// No probe comes while the test runs.
				settings := circuit.Default()
				settings.ConsecutiveFailures, settings.MinOpen, settings.MaxOpen = 3, time.Hour, time.Hour
				f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Circuit: &settings}})
				for i := range 6 {
					got := f.throughREST(t)
					want, refused := tc.kind, tc.opens && i >= 3
					text := clusterCircuitText
					if tc.stopped {
						text = circuitText
					}
					if refused {
						want = "Unreachable"
					}
					if got.kind != want || refused != strings.Contains(got.message, fmt.Sprintf(text, tc.kind)) {
						t.Errorf("call %d: got %+v, want the kind %q, refused %t", i, got, want, refused)
					}
				}
				want := int32(6)
				if tc.opens {
					want = 3
				}
				// On a busy machine, a timeout may pass before there is a connection.
				least := want
				if name == "Hangs" {
					least = 0
				}
				if n := calls.Load(); !tc.stopped && (n < least || n > want) {
					t.Errorf("%d of 6 calls reached the extension, want %d", n, want)
				}
			})
		}
	}
}
