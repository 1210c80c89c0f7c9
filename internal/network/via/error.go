// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package via

import "github.com/hookgate/hookgate/hook"

const (
	// ErrorKindHeader carries the kind of the error in a gateway's answers other than 200.
	ErrorKindHeader = "Hookgate-Error-Kind"
	// ErrorDomain is the domain of the google.rpc.ErrorInfo of a gateway's errors over gRPC, whose reason is the kind.
	ErrorDomain = "hookgate.dev"
)

// decided are the kinds of the errors that a gateway decides about a call, rather than about who calls it or about
// itself. Any extension may claim one: none makes a success of a failure, and what failure policies hide is up to the
// kind.
var decided = []hook.Kind{
	hook.InvalidRequest, hook.UnknownHandler, hook.Ambiguous, hook.TooLarge, hook.NotReady, hook.Conversion,
	hook.Unreachable, hook.Timeout, hook.BadResponse, hook.Policy, hook.Overloaded, hook.Loop,
}

// Decided returns the kind of that name if it is one that a gateway behind this one may have decided, so that it stands
// for the call through all gateways. is reports whether the code of the answer is that of an error.
func Decided(name string, is func(*hook.Error) bool) (kind hook.Kind, ok bool) {
	for _, kind := range decided {
		if kind.String() == name {
			return kind, is(&hook.Error{Kind: kind}) || is(&hook.Error{Kind: kind, Refused: true})
		}
	}
	return 0, false
}
