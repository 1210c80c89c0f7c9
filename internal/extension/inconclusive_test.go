// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// An answer that finds fault with one request says nothing about the next one.
func TestAnswersThatFindFaultWithTheRequest(t *testing.T) {
	ca := newAuthority(t)
	for code, want := range map[int]bool{
		200: false, 204: false, 302: false, 400: true, 404: true, 413: true, 429: false, 499: true, 500: false, 503: false,
	} {
		s := newServer(t, ca, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, nil)
		result, err := newREST(t, Config{}).Call(t.Context(), newCall(s.cc))
		if err == nil || result.Inconclusive != want {
			t.Errorf("%d: got %v, inconclusive %t, want %t", code, err, result.Inconclusive, want)
		}
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		cc := newAuthor(t, ca, &author{create: func(
			context.Context, *hooksv1alpha1.BeforeClusterCreateRequest,
		) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			return nil, status.Error(code, "no")
		}}, nil)
		want := false
		switch code {
		case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
			codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated:
			want = true
		}
		result, err := newGRPC(t, Config{}).Call(t.Context(), newCall(cc))
		if err == nil || result.Inconclusive != want {
			t.Errorf("%s: got %v, inconclusive %t, want %t", code, err, result.Inconclusive, want)
		}
	}
}
