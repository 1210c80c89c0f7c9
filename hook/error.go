// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"fmt"
)

// Kind is what a failed call is called. It is decided once, where the failure is detected, and decides what a failure
// policy hides, whether a call is tried again, and the status codes that callers see.
type Kind uint8

// The kinds. Internal, the zero value, is what an error without a kind is: a defect of the gateway.
const (
	Internal        Kind = iota
	InvalidRequest       // the request is not valid JSON, or not what the hook takes
	Unauthenticated      // the caller has not said who it is
	Forbidden            // the caller may not call this
	UnknownHook          // no such hook
	UnknownHandler       // no such handler, or none for that namespace
	Ambiguous            // several handlers match a hook whose answers cannot be merged
	TooLarge             // the request is larger than the limit
	NotReady             // the registry has not been filled yet
	Conversion           // an object could not be converted between versions
	Unreachable          // no connection, or one that broke
	Timeout              // no answer in time
	BadResponse          // an answer that is not one: status code, size, JSON, kind or status
	Canceled             // the caller left
	Policy               // what the operator says of the handler could not be evaluated for the request
)

var kindNames = [...]string{
	"Internal", "InvalidRequest", "Unauthenticated", "Forbidden", "UnknownHook", "UnknownHandler", "Ambiguous", "TooLarge",
	"NotReady", "Conversion", "Unreachable", "Timeout", "BadResponse", "Canceled", "Policy",
}

// Kinds returns all kinds, for tables and documentation.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String returns the name of the kind, as metrics and logs have it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Ignorable tells whether the failure policy Ignore hides errors of this kind: only those of a call that could not be
// completed, or not be begun because an operator's condition failed, never those of a wrong request or setting.
func (k Kind) Ignorable() bool {
	return k == Unreachable || k == Timeout || k == BadResponse || k == Policy
}

// Error is a failed call. Its text is the same for the same failure every time: it has no ephemeral port, time,
// generated id or text ordered by a map, because callers write it into conditions, where a text that changes never
// settles. What varies, and what an extension wrote, is in Cause, for the log.
type Error struct {
	Kind    Kind
	Handler string // the registered name of the handler that failed, if one did
	Message string // what happened, and what to do where that helps
	Cause   error  // for the log only; may be nil
}

// Errorf returns an Error without a cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
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

// KindOf returns the kind of the first Error in err's tree, and Internal if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}
