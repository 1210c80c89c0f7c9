// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

func TestDispatchCallsHandlersAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registrations []registry.Registration
		for i := range 10 {
			registrations = append(registrations, registrationOf(fmt.Sprintf("e%d", i), handlerOf("v", "BeforeClusterDelete", hook.Fail)))
		}
		caller := callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
			time.Sleep(20 * time.Millisecond)
			return outcome.Success(c.Hook), nil
		})
		start := time.Now()
		_, err := newDispatcher(filled(t, registrations...), fixedNamespaces{}, caller).
			dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("10 handlers of 20 ms took %s of the bubble's time, want 20 ms", took)
		}
	})
}

// recorder answers after a second, and remembers who was called when.
type recorder struct {
	start   time.Time
	answers answers

	mu    sync.Mutex
	calls map[string]time.Duration
}

func (r *recorder) Call(ctx context.Context, c extension.Call) (proto.Message, error) {
	r.mu.Lock()
	r.calls[c.Handler.Name] = time.Since(r.start)
	r.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
	}
	if f, ok := r.answers[c.Handler.Name]; ok {
		return f(ctx, c)
	}
	return outcome.Success(c.Hook), nil
}

func TestPolicyOrder(t *testing.T) {
	const hookName = "BeforeClusterDelete"
	answer := func(status hooksv1alpha1.ResponseStatus, message string, retry int32) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterDeleteResponse{Status: status, Message: message, RetryAfterSeconds: retry})
	}
	unreachable := hook.Errorf(hook.Unreachable, "call extension: connection refused")
	whole := map[string]time.Duration{"v.c": 0, "v.a": time.Second, "v.d": 2 * time.Second, "v.b": 3 * time.Second, "v.e": 3 * time.Second}
	tests := map[string]struct {
		reason  string
		answers answers
		policy  hook.FailurePolicy
		calls   map[string]time.Duration // when each was called
		took    time.Duration
		want    *hooksv1alpha1.BeforeClusterDeleteResponse
		text    string
	}{
		"Sequence": {
			"lowest first, by name where it is the same, then all others at the same time; messages stay in the order of names",
			answers{"v.a": answer(success, "a", 0), "v.b": answer(success, "b", 0), "v.c": answer(success, "c", 0)}, "", whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, Message: "a, b, c"}, "",
		},
		"Hold": {
			"who holds the caller does not keep others from being asked", answers{"v.c": answer(success, "c", 9), "v.b": answer(success, "b", 5)}, "", whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, Message: "b, c", RetryAfterSeconds: 5}, "",
		},
		"Failure": {
			"a Failure ends the sequence", answers{"v.a": answer(failure, "no", 0)}, "", map[string]time.Duration{"v.c": 0, "v.a": time.Second}, 2 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: failure, Message: `handler "v.a": no`}, "",
		},
		"Error": {
			"an error ends the sequence", answers{"v.c": fails(unreachable)}, "", map[string]time.Duration{"v.c": 0}, time.Second,
			nil, `handler "v.c": call extension: connection refused`,
		},
		"Ignored": {
			"an error that is ignored does not", answers{"v.c": fails(unreachable)}, hook.Ignore, whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, Message: `ignored: handler "v.c": Unreachable`}, "",
		},
		"Unordered": {
			"a handler without an order does not keep others from being called", answers{"v.b": fails(unreachable)}, "", whole, 4 * time.Second,
			nil, `handler "v.b": call extension: connection refused`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := filled(t)
				for _, x := range []string{"a", "b", "c", "d", "e"} {
					if err := r.Apply(registrationOf(x, handlerOf("v", hookName, hook.Fail))); err != nil {
						t.Fatal(err)
					}
				}
				for x, order := range map[string]int32{"a": 7, "d": 7, "c": -1} {
					r.SetPolicies(x, forHandler("v", policy.Policy{Order: new(order), FailurePolicy: tc.policy}))
				}
				caller := &recorder{start: time.Now(), answers: tc.answers, calls: map[string]time.Duration{}}
				got, err := newDispatcher(r, fixedNamespaces{}, caller).
					dispatch(t.Context(), hookOf(t, hookName), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
				if took := time.Since(caller.start); took != tc.took {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.took)
				}
				if diff := cmp.Diff(tc.calls, caller.calls); diff != "" {
					t.Errorf("%s: calls -want +got:\n%s", tc.reason, diff)
				}
				if tc.text != "" {
					if err == nil || err.Error() != tc.text {
						t.Errorf("%s: got %v, want %s", tc.reason, err, tc.text)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(proto.Message(tc.want), got, protocmp.Transform()); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A sequence is bounded as one call is: handlers at its end get what is left.
func TestPolicyOrderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := filled(t)
		for i, x := range []string{"a", "b", "c", "d"} {
			h := handlerOf("v", "BeforeClusterDelete", hook.Fail)
			h.Timeout = 20 * time.Second
			if err := r.Apply(registrationOf(x, h)); err != nil {
				t.Fatal(err)
			}
			r.SetPolicies(x, forHandler("v", policy.Policy{Order: new(int32(i)), FailurePolicy: hook.Ignore}))
		}
		var calls []string
		caller := callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
			calls = append(calls, c.Handler.Name)
			<-ctx.Done()
			return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
		})
		start := time.Now()
		_, err := newDispatcher(r, fixedNamespaces{}, caller).
			dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
		if took := time.Since(start); err != nil || took > limits.Timeout {
			t.Errorf("got %v after %s, want no more than %s", err, took, limits.Timeout)
		}
		if !slices.Equal(calls, []string{"v.a", "v.b", "v.c", "v.d"}) {
			t.Errorf("called %v", calls)
		}
	})
}
