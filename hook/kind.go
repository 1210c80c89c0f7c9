// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
)

// Kind classifies a failed call. It is decided once, where the failure is detected, and decides what a failure policy
// hides, whether a call is retried, and the status codes that callers see.
type Kind uint8

// The kinds. Internal, the zero value, is the kind of an error without one: a defect of the gateway.
const (
	Internal Kind = iota
	InvalidRequest
	Unauthenticated
	Forbidden
	UnknownHook
	UnknownHandler
	Ambiguous
	TooLarge
	NotReady
	Conversion
	Unreachable
	Timeout
	BadResponse
	Canceled
	Policy
	Overloaded
	Loop
)

// statusClientClosedRequest means that the caller left before the answer. Only logs and metrics show it.
const statusClientClosedRequest = 499

// kinds is all that is known about each kind: Ignorable, HTTPStatus, GRPCCode and the documentation read it.
var kinds = [...]struct {
	name      string
	ignorable bool
	http      int
	grpc      codes.Code
	meaning   string
}{
	Internal: {"Internal", false, http.StatusInternalServerError, codes.Internal,
		"A defect of the gateway. The log has the cause under the call ID."},
	InvalidRequest: {"InvalidRequest", false, http.StatusBadRequest, codes.InvalidArgument,
		"The request is not JSON, has a member of the wrong type, or lacks the object that the hook is about; or " +
			"its Content-Type is one that any web page can send. The text names the member or the type."},
	Unauthenticated: {"Unauthenticated", false, http.StatusUnauthorized, codes.Unauthenticated,
		"The caller did not prove its identity."},
	Forbidden: {"Forbidden", false, http.StatusForbidden, codes.PermissionDenied,
		"The caller may not call this hook, or the call comes from a web page of another site in a browser."},
	UnknownHook: {"UnknownHook", false, http.StatusNotFound, codes.NotFound,
		"There is no such hook, or the path is wrong."},
	UnknownHandler: {"UnknownHandler", false, http.StatusNotFound, codes.NotFound,
		"No handler has this name, or the handler belongs to another hook. The error also occurs if the request " +
			"does not match the namespaceSelector of the handler's ExtensionConfig, or the objectSelector or " +
			"matchConditions of the handler's ExtensionPolicy."},
	Ambiguous: {"Ambiguous", false, http.StatusConflict, codes.FailedPrecondition,
		"Several handlers match a hook whose answers cannot be merged. The text lists the handlers: name one of " +
			"them. The error also occurs if calls from two management clusters are about Clusters with the same " +
			"namespace and name: use one gateway for each management cluster."},
	TooLarge: {"TooLarge", false, http.StatusRequestEntityTooLarge, codes.ResourceExhausted,
		"The decompressed request is larger than 20 MiB, or has more elements or longer names than the limits " +
			"allow. The text names the limit."},
	NotReady: {"NotReady", false, http.StatusServiceUnavailable, codes.Unavailable,
		"The gateway cannot answer yet: try again. After a start, the gateway cannot answer before it has read its " +
			"ExtensionConfigs. A sidecar cannot answer before its extension has answered. A call that names no handler fails " +
			"if not all handlers of the hook are known. A call that names a handler fails if the handler's ExtensionConfig " +
			"has not been discovered: the text names the ExtensionConfig and the reason. A call also fails if the API server " +
			"did not check the caller's token in time."},
	Conversion: {"Conversion", false, http.StatusInternalServerError, codes.Internal,
		"The version of an object in the request or in the answer cannot be converted to a version that the " +
			"handler or the caller understands. The error also occurs if the handler implements a version of the hook " +
			"that the gateway does not serve, or if a request in one version of the hook cannot be expressed in " +
			"another version. The text names what cannot be converted."},
	Unreachable: {"Unreachable", true, http.StatusServiceUnavailable, codes.Unavailable,
		"The gateway could not connect to the extension, the connection broke, or a circuit is open. A circuit " +
			"opens after too many failed calls to the extension, to the handler, or to the handler about this Cluster."},
	Timeout: {"Timeout", true, http.StatusGatewayTimeout, codes.DeadlineExceeded,
		"The extension did not answer within its timeout, or before the caller's deadline."},
	BadResponse: {"BadResponse", true, http.StatusBadGateway, codes.Unavailable,
		"The answer of the extension cannot be used: its status code is not 200, or the answer is too large, is not JSON, " +
			"is of another kind, or has no status."},
	Canceled: {"Canceled", false, statusClientClosedRequest, codes.Canceled,
		"The caller left before the answer."},
	Policy: {"Policy", true, http.StatusInternalServerError, codes.Internal,
		"A match condition of the handler's ExtensionPolicy fails for the request, is neither true nor false, or " +
			"costs too much, so the gateway cannot decide whether to call the handler. The text names the policy " +
			"and the condition; the log has the error of CEL under the call ID."},
	Overloaded: {"Overloaded", false, http.StatusServiceUnavailable, codes.ResourceExhausted,
		"The gateway has no capacity left, or the caller or the extension has used up its share. The call was not made, " +
			"or its answer was not read. The text names what is used up. Try again after the time in the header Retry-After " +
			"(gRPC: the google.rpc.RetryInfo in the status details)."},
	Loop: {"Loop", false, http.StatusLoopDetected, codes.FailedPrecondition,
		"The call has come back to a gateway that it has already passed, or has passed more than 8 gateways. " +
			"The text names the handlers that the call has gone through. If the call has come back, the ExtensionConfig of " +
			"one of these handlers has a URL that leads back to the gateway."},
}

// Kinds returns all kinds, for tables and documentation.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// String returns the name of the kind, as metrics and logs have it.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Ignorable reports whether the failure policy Ignore hides errors of this kind: those of a call that could not be
// completed, or not be started because a condition of the operator failed. Errors of a wrong request or setting are
// never hidden.
func (k Kind) Ignorable() bool { return kinds[k].ignorable }

// HTTPStatus returns the status code of an answer with an error of this kind over HTTP.
func (k Kind) HTTPStatus() int { return kinds[k].http }

// GRPCCode returns the code of an error of this kind over gRPC.
func (k Kind) GRPCCode() codes.Code { return kinds[k].grpc }

// Meaning returns when errors of this kind occur and what to do about them, in sentences for the documentation.
func (k Kind) Meaning() string { return kinds[k].meaning }

// KindOf returns the kind of the first Error in err's tree, and Internal if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
