// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"errors"
	"fmt"
	"time"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// ErrBusy reports that the class has no place for another call. Nothing was called: try again soon.
var ErrBusy = errors.New("too many calls for the InfrastructureClass are in flight")

// Error reports a call without a valid answer. Nothing follows from it about what exists in the backend.
type Error struct {
	// Reason is a reason of the condition Synced.
	Reason string
	// Message says what happened and what to do. It is equal for equal failures.
	Message string
	// RetryAfter is when the extension or the gateway wants to be called again. Zero leaves it to the caller.
	RetryAfter time.Duration
	// Outcome is the reason or, for an error of the gateway, its kind, for metrics.
	Outcome string

	cause error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, which belongs in a log.
func (e *Error) Unwrap() error { return e.cause }

// bad returns the error of an answer that breaks the contract.
func bad(format string, args ...any) *Error { return refused(infrav1.BadAnswerReason, format, args...) }

func refused(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Outcome: reason, Message: fmt.Sprintf(format, args...)}
}
