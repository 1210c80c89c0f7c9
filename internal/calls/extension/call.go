// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// Call is one request to one handler. Handlers that are called at the same time share what it refers to, so a Caller
// only reads it, and passes on a changed copy where the next one needs another request.
type Call struct {
	// ID is the id of the call of the gateway's caller, in log lines.
	ID      string
	Hook    *catalog.Hook
	Handler *registry.Entry
	// Request is a message of type Hook.Request. It is nil if nothing between the caller and the handler reads it, so that
	// Body is sent on. Then Partial is the request without some of its elements, as Codec.DecodePartial reads it, and
	// Elements are these, if the handler is called over gRPC.
	Request, Partial proto.Message
	Elements         *codec.Elements
	// Body is the JSON of Request as the caller sent it, which is sent on unchanged. Nil means to encode Request.
	Body []byte
	// PolicyError, if it is not nil, says why the handler's ExtensionPolicy could not be evaluated for the request.
	// The handler is not called then: this is the error of the call.
	PolicyError error
	// Memory reserves what the call and its answer need. Nil bounds nothing.
	Memory *budget.Charge
	// Via is the way of the call, this gateway included.
	Via via.Way
	// CalledAs is the name by which the caller knows the handler, if that is another one than its own: that of the
	// ExtensionRollout which stands for it.
	CalledAs string
	// Comparison marks a call whose answer is compared with that of another version, and not used.
	Comparison bool
}

// Message returns the request, as far as it has been decoded.
func (c *Call) Message() proto.Message {
	if c.Request == nil {
		return c.Partial
	}
	return c.Request
}

// Cluster returns the Cluster that the call is about, if there can be one of that name.
func (c *Call) Cluster() (namespace, name string) { return ClusterOf(c.Message()) }

// ClusterOf returns the Cluster that a request is about, if there can be one of that name.
func ClusterOf(request proto.Message) (namespace, name string) {
	if namespace, name = subject.Cluster(request); len(namespace)+len(name) > limits.NameBytes {
		return "", ""
	}
	return namespace, name
}

// Result is what came of a Call. All of it but Response is valid for a failed call too.
type Result struct {
	// Response is a fresh message of type Hook.Response, and nil if the call failed.
	Response proto.Message
	// Sent and Received are the sizes of the bodies in bytes, as far as they were transferred.
	Sent, Received int64
	// Misspelt says which members of the answer mean nothing because their names are misspelt. It is known of the first
	// few.
	Misspelt []string
	// Lost holds the paths of the members that conversions of the request or the response could not express.
	Lost []string
	// Ignored is the error that the handler's failure policy hid, if any.
	Ignored error
	// Inconclusive means that the error of the call says nothing about whether the extension works: its caller gave it
	// too little time, or the extension has found fault with the request.
	Inconclusive bool
	// Connected means that a connection had been made when the call failed, so that the server of the extension is there:
	// the failure is one of the handler.
	Connected bool
	// Waited means that the call waited for an extension that took no connections.
	Waited bool
	// Audited is what a handler that only audits would have answered; nil if that is a success without more.
	Audited *Audited
	// LiftedBy is the name of the ExtensionPolicy that has lifted a hold of the handler; empty for none.
	LiftedBy string
	// Refused means that a circuit is open, so that the call was not made.
	Refused bool
	// Decided means that a gateway behind this one has decided the error, about this call. Its text is that gateway's.
	Decided bool
}

// Audited is what a handler would have answered, for people, and about which Cluster, if there can be one of that name.
type Audited struct{ Outcome, Message, Namespace, Cluster string }

// The outcomes.
const (
	AuditedHold    = "hold"
	AuditedFailure = "failure"
	AuditedPatches = "patches"
	AuditedError   = "error"
)

// String returns the message behind the outcome.
func (a *Audited) String() string { return a.Outcome + ": " + a.Message }

// IsFailure reports whether the error of the call says that the handler, or its extension, does not work.
func (r *Result) IsFailure(err error) bool {
	switch hook.KindOf(err) {
	case hook.Unreachable, hook.Timeout, hook.BadResponse:
		return err != nil && !r.Inconclusive
	}
	return false
}

// Caller calls a handler. Its error is a *hook.Error of kind Unreachable, Timeout, BadResponse, Canceled, TooLarge,
// InvalidRequest, Conversion, Policy, Loop, Overloaded or Internal. A Caller is safe for concurrent use.
type Caller func(ctx context.Context, c Call) (Result, error)

// Link wraps a Caller with one concern, such as a deadline or a conversion.
type Link func(next Caller) Caller
