// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/registry"
)

// callTo is a call to a handler v.a of a hook.
func callTo(t testing.TB, hookName string, change ...func(*registry.Handler)) extension.Call {
	t.Helper()
	h := hookOf(t, hookName)
	handler := handlerOf("v", hookName, hook.Fail)
	for _, f := range change {
		f(&handler)
	}
	reg := registrationOf("a", handler)
	return extension.Call{
		Hook: h, Handler: &registry.Entry{Name: "v.a", Handler: handler, Registration: &reg},
		Request: h.Request.New().Interface(), Body: []byte("{}"),
	}
}

// Ignore hides exactly the kinds that mean that there is no answer, and Fail hides none.
func TestFailurePolicyByKind(t *testing.T) {
	hidden := []hook.Kind{hook.Unreachable, hook.Timeout, hook.BadResponse, hook.Policy}
	for _, kind := range hook.Kinds() {
		for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore, ""} {
			t.Run(kind.String()+"/"+string(policy), func(t *testing.T) {
				failed := hook.Errorf(kind, "no")
				caller := failurePolicy(func(context.Context, extension.Call) (extension.Result, error) {
					half := &hooksv1alpha1.BeforeClusterCreateResponse{RetryAfterSeconds: 30, Message: "half"}
					return extension.Result{Response: half, Sent: 1, Received: 2, Lost: []string{"a"}}, failed
				})
				got, err := caller(t.Context(), callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.FailurePolicy = policy }))
				if got.Sent != 1 || got.Received != 2 || !slices.Equal(got.Lost, []string{"a"}) {
					t.Errorf("what is known about the call is lost: %+v", got)
				}
				if policy != hook.Ignore || !slices.Contains(hidden, kind) {
					if !errors.Is(err, failed) || got.Ignored != nil {
						t.Errorf("got error %v and ignored %v, want the error", err, got.Ignored)
					}
					return
				}
				if err != nil || !errors.Is(got.Ignored, failed) {
					t.Errorf("got error %v and ignored %v, want it ignored", err, got.Ignored)
				}
				want := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: `ignored: handler "v.a": ` + kind.String()}
				if diff := cmp.Diff(want, got.Response, protocmp.Transform()); diff != "" {
					t.Errorf("an ignored failure answers with a success that says so: -want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestFailurePolicyDoesNotHideDefects(t *testing.T) {
	defect := errors.New("not a hook.Error")
	caller := failurePolicy(func(context.Context, extension.Call) (extension.Result, error) { return extension.Result{}, defect })
	ignore := callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.FailurePolicy = hook.Ignore })
	if got, err := caller(t.Context(), ignore); !errors.Is(err, defect) || got.Ignored != nil || got.Response != nil {
		t.Errorf("got %+v, %v; want the error", got, err)
	}
}

// An answer of the extension passes as it is, be it Success or Failure.
func TestFailurePolicyPassesAnswers(t *testing.T) {
	for _, status := range []hooksv1alpha1.ResponseStatus{success, failure} {
		answer := &hooksv1alpha1.BeforeClusterCreateResponse{Status: status, Message: "m"}
		caller := failurePolicy(func(context.Context, extension.Call) (extension.Result, error) {
			return extension.Result{Response: answer}, nil
		})
		got, err := caller(t.Context(), callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.FailurePolicy = hook.Ignore }))
		if err != nil || got.Response != answer || got.Ignored != nil {
			t.Errorf("%s: got %+v, %v", status, got, err)
		}
	}
}
