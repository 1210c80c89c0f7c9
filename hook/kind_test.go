// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestKinds(t *testing.T) {
	want := []struct {
		kind      Kind
		name      string
		ignorable bool
		http      int
		grpc      codes.Code
	}{
		{Internal, "Internal", false, 500, codes.Internal},
		{InvalidRequest, "InvalidRequest", false, 400, codes.InvalidArgument},
		{Unauthenticated, "Unauthenticated", false, 401, codes.Unauthenticated},
		{Forbidden, "Forbidden", false, 403, codes.PermissionDenied},
		{UnknownHook, "UnknownHook", false, 404, codes.NotFound},
		{UnknownHandler, "UnknownHandler", false, 404, codes.NotFound},
		{Ambiguous, "Ambiguous", false, 409, codes.FailedPrecondition},
		{TooLarge, "TooLarge", false, 413, codes.ResourceExhausted},
		{NotReady, "NotReady", false, 503, codes.Unavailable},
		{Conversion, "Conversion", false, 500, codes.Internal},
		{Unreachable, "Unreachable", true, 503, codes.Unavailable},
		{Timeout, "Timeout", true, 504, codes.DeadlineExceeded},
		{BadResponse, "BadResponse", true, 502, codes.Unavailable},
		{Canceled, "Canceled", false, 499, codes.Canceled},
		{Policy, "Policy", true, 500, codes.Internal},
		{Overloaded, "Overloaded", false, 503, codes.ResourceExhausted},
		{Loop, "Loop", false, 508, codes.FailedPrecondition},
	}
	all := Kinds()
	if len(all) != len(want) {
		t.Fatalf("there are %d kinds, want %d", len(all), len(want))
	}
	for i, tc := range want {
		k := tc.kind
		if all[i] != k || k.String() != tc.name || k.Ignorable() != tc.ignorable || k.HTTPStatus() != tc.http || k.GRPCCode() != tc.grpc {
			t.Errorf("%s: got %v, ignorable %t, HTTP %d, gRPC %s; want %+v", tc.name, k, k.Ignorable(), k.HTTPStatus(), k.GRPCCode(), tc)
		}
		if !strings.HasSuffix(k.Meaning(), ".") {
			t.Errorf("%s means %q, want sentences", tc.name, k.Meaning())
		}
	}
	if got := Kind(len(want)).String(); got != "Kind(17)" {
		t.Errorf("a kind that does not exist is called %s", got)
	}
}

func TestKindOf(t *testing.T) {
	e := Errorf(Timeout, "no answer")
	for name, tc := range map[string]struct {
		err  error
		want Kind
	}{
		"Nil":     {nil, Internal},
		"Other":   {errors.New("x"), Internal},
		"Error":   {e, Timeout},
		"Wrapped": {fmt.Errorf("call: %w", e), Timeout},
		"Joined":  {errors.Join(errors.New("x"), e, Errorf(Canceled, "y")), Timeout},
		"Cause":   {Errorf(BadResponse, "z").WithCause(e), BadResponse},
	} {
		if got := KindOf(tc.err); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestErrorsAreCopiedNotChanged(t *testing.T) {
	e, cause := Errorf(Timeout, "no answer within %ds", 3), errors.New("dial 10.0.0.7:4711")
	named := e.WithCause(cause).WithHandler("v.acme")
	if e.Error() != "no answer within 3s" || e.Handler != "" || errors.Unwrap(e) != nil {
		t.Errorf("the error was changed: %+v", e)
	}
	if want := `handler "v.acme": no answer within 3s`; named.Error() != want || named.Kind != Timeout {
		t.Errorf("got %v (%s), want %s", named, named.Kind, want)
	}
	if later := named.WithRetryAfter(2 * time.Second); later.RetryAfter != 2*time.Second || named.RetryAfter != 0 {
		t.Errorf("got %s and %s, want 2 s in the copy alone", later.RetryAfter, named.RetryAfter)
	}
	if !errors.Is(named, cause) {
		t.Error("the cause is lost")
	}
}
