// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
)

// errorDomain is the domain of the ErrorInfo that gRPC errors carry.
const errorDomain = "hookgate.dev"

// statusClientClosedRequest says that the caller left before the answer; nobody reads it but logs and metrics.
const statusClientClosedRequest = 499

// statusCodes is the error table: what each kind is called on the wire.
var statusCodes = [...]struct {
	grpc codes.Code
	http int
}{
	hook.Internal:        {codes.Internal, http.StatusInternalServerError},
	hook.InvalidRequest:  {codes.InvalidArgument, http.StatusBadRequest},
	hook.Unauthenticated: {codes.Unauthenticated, http.StatusUnauthorized},
	hook.Forbidden:       {codes.PermissionDenied, http.StatusForbidden},
	hook.UnknownHook:     {codes.NotFound, http.StatusNotFound},
	hook.UnknownHandler:  {codes.NotFound, http.StatusNotFound},
	hook.Ambiguous:       {codes.FailedPrecondition, http.StatusConflict},
	hook.TooLarge:        {codes.ResourceExhausted, http.StatusRequestEntityTooLarge},
	hook.NotReady:        {codes.Unavailable, http.StatusServiceUnavailable},
	hook.Conversion:      {codes.Internal, http.StatusInternalServerError},
	hook.Unreachable:     {codes.Unavailable, http.StatusServiceUnavailable},
	hook.Timeout:         {codes.DeadlineExceeded, http.StatusGatewayTimeout},
	hook.BadResponse:     {codes.Unavailable, http.StatusBadGateway},
	hook.Canceled:        {codes.Canceled, statusClientClosedRequest},
	hook.Policy:          {codes.Internal, http.StatusInternalServerError},
}

// httpStatus returns the HTTP status code of a kind.
func httpStatus(k hook.Kind) int { return statusCodes[k].http }

// grpcError returns err as gRPC callers get it: the code of its kind, its text, and an ErrorInfo whose reason is the kind,
// because several kinds share a code.
func grpcError(err error) error {
	e := asError(err)
	st := status.New(statusCodes[e.Kind].grpc, e.Error())
	info := &errdetails.ErrorInfo{Reason: e.Kind.String(), Domain: errorDomain}
	if e.Handler != "" {
		info.Metadata = map[string]string{"handler": e.Handler}
	}
	if detailed, err := st.WithDetails(info); err == nil {
		st = detailed
	}
	return st.Err()
}
