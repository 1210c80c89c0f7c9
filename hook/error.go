// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Error is the error of a failed call. Its text is the same for the same failure every time: it has no ephemeral port,
// time, generated id or text ordered by a map, because callers write it into conditions, where a text that changes
// never settles. What varies, and what an extension wrote, is in Cause, for the log.
type Error struct {
	Kind    Kind
	Handler string // the registered name of the handler that failed, if one did
	Message string // what happened, and what to do where that helps
	Cause   error  // for the log only; may be nil
	// RetryAfter is when a new attempt may succeed, and 0 if that is not known. It leaves the gateway beside the text: as
	// the header Retry-After, or as a google.rpc.RetryInfo.
	RetryAfter time.Duration
	// Refused means that the extension answered that the request is invalid, and that the gateway stands for this
	// extension alone, so that its own answer says the same. It changes the codes of a BadResponse, and not its kind.
	Refused bool
}

// Errorf returns an Error without a cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// HTTPStatus returns the status code of an answer with the error over HTTP.
func (e *Error) HTTPStatus() int {
	if e.Refused && e.Kind == BadResponse {
		return InvalidRequest.HTTPStatus()
	}
	return e.Kind.HTTPStatus()
}

// GRPCCode returns the code of the error over gRPC.
func (e *Error) GRPCCode() codes.Code {
	if e.Refused && e.Kind == BadResponse {
		return InvalidRequest.GRPCCode()
	}
	return e.Kind.GRPCCode()
}

// Error returns the text that may leave the gateway: handler and message, without the cause.
func (e *Error) Error() string {
	if e.Handler == "" {
		return e.Message
	}
	return fmt.Sprintf("handler %q: %s", e.Handler, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// WithCause returns a copy of e with a cause, for the log.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithHandler returns a copy of e that names the handler that failed.
func (e *Error) WithHandler(name string) *Error {
	c := *e
	c.Handler = name
	return &c
}

// WithRetryAfter returns a copy of e that says when a new attempt may succeed.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}
