// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
)

// ErrorOf returns err as a hook.Error. Any other error is either from the REST mux, about a body that it could not
// decode, or a defect of the gateway, whose text stays in the log.
func ErrorOf(err error) *hook.Error {
	if e, ok := errors.AsType[*hook.Error](err); ok {
		return e
	}
	if st, ok := status.FromError(err); ok && st.Code() == codes.InvalidArgument {
		return hook.Errorf(hook.InvalidRequest, "%s", st.Message())
	}
	return Internal(err)
}

// Internal returns the error of a defect, whose cause stays in the log.
func Internal(cause error) *hook.Error {
	return hook.Errorf(hook.Internal, "internal error: see the gateway's log").WithCause(cause)
}

// Recovered returns the error of the one call in which a panic happened.
func Recovered(p any) *hook.Error {
	return Internal(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}

// CauseOf returns the cause of err, which the text for callers leaves out, or err itself if it has none.
func CauseOf(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
