// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
)

// asError returns err as a hook.Error. One that is none is either what the REST mux says of a body it could not decode, or
// a defect of the gateway, whose text stays in the log.
func asError(err error) *hook.Error {
	var e *hook.Error
	if errors.As(err, &e) {
		return e
	}
	if st, ok := status.FromError(err); ok && st.Code() == codes.InvalidArgument {
		return hook.Errorf(hook.InvalidRequest, "%s", st.Message())
	}
	return hook.Errorf(hook.Internal, "internal error: see the gateway's log").WithCause(err)
}

// recovered turns a panic into the error of the one call that it happened in.
func recovered(p any) error {
	return hook.Errorf(hook.Internal, "internal error: see the gateway's log").WithCause(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}
