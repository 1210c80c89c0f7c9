// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/network/via"
)

// grpcError returns err as gRPC callers get it: its code, its text, and an ErrorInfo whose reason is the
// kind, because several kinds share a code. A RetryInfo says when to try again, if that is known.
func grpcError(err error) error {
	e := outcome.ErrorOf(err)
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
