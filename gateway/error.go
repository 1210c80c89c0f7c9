// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/via"
)

// asError returns err as a hook.Error. Any other error is either from the REST mux, about a body that it could not
// decode, or a defect of the gateway, whose text stays in the log.
func asError(err error) *hook.Error {
	if e, ok := errors.AsType[*hook.Error](err); ok {
		return e
	}
	if st, ok := status.FromError(err); ok && st.Code() == codes.InvalidArgument {
		return hook.Errorf(hook.InvalidRequest, "%s", st.Message())
	}
	return internalError(err)
}

// internalError returns the error of a defect, whose cause stays in the log.
func internalError(cause error) *hook.Error {
	return hook.Errorf(hook.Internal, "internal error: see the gateway's log").WithCause(cause)
}

// recovered returns the error of the one call in which a panic happened.
func recovered(p any) *hook.Error {
	return internalError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}

// grpcError returns err as gRPC callers get it: its code, its text, and an ErrorInfo whose reason is the
// kind, because several kinds share a code. A RetryInfo says when to try again, if that is known.
func grpcError(err error) error {
	e := asError(err)
	st := status.New(e.GRPCCode(), e.Error())
	info := &errdetails.ErrorInfo{Reason: e.Kind.String(), Domain: via.ErrorDomain}
	if e.Handler != "" {
		info.Metadata = map[string]string{"handler": e.Handler}
	}
	details := []protoadapt.MessageV1{info}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	if detailed, err := st.WithDetails(details...); err == nil {
		st = detailed
	}
	return st.Err()
}
