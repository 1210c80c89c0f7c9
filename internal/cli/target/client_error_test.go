// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/internal/calls/client"
)

// TestHintOfUnimplemented checks that only a server without the hook gets the hint that says so.
func TestHintOfUnimplemented(t *testing.T) {
	for name, tc := range map[string]struct {
		code codes.Code
		want string
	}{
		"NoSuchHook": {codes.Unimplemented, "The server does not serve this hook."},
		"Down":       {codes.Unavailable, ""},
		"Refused":    {codes.PermissionDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &client.Response{Header: http.Header{}, GRPC: status.New(tc.code, "no")}
			if got := (&Server{}).Refusal(r, "").Hint; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRefusalWithoutText checks that a status without a text leaves no gap in the error.
func TestRefusalWithoutText(t *testing.T) {
	r := &client.Response{Status: "gRPC PermissionDenied", Header: http.Header{}, GRPC: status.New(codes.PermissionDenied, "")}
	if got, want := (&Server{}).Refusal(r, "").Error(), "gRPC PermissionDenied: the status has no text"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
