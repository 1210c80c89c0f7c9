// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
)

// Explanation says which handlers a request is for, in which order and how they would be called, and what excludes the
// others. Its texts are the same for the same request and registrations.
type Explanation struct {
	Hook       string `json:"hook"`
	APIVersion string `json:"apiVersion"`
	// Handler is the name that the request has. Empty means every handler that matches.
	Handler string `json:"handler,omitempty"`
	// Cluster is namespace/name of the Cluster that the request is about, as far as it says.
	Cluster string `json:"cluster,omitempty"`
	// Failure is what the call fails with before it calls any handler.
	Failure *ExplainedError `json:"failure,omitempty"`
	// Handlers are those that are called, by turn and name, and then the others by name.
	Handlers []ExplainedHandler `json:"handlers"`
	// NotListed is the number of further handlers.
	NotListed int `json:"notListed,omitempty"`
	// Answer is the answer to the request, if its handlers were called.
	Answer *ExplainedAnswer `json:"answer,omitempty"`
}

// ExplainedError is an error, as a call returns it.
type ExplainedError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// ExplainedHandler is a handler or a HandlerChain of the hook, or a step of a chain, or an ExtensionConfig whose
// handlers are not known. If it is not known either, as a step may be, there is no more than its name and the reason.
type ExplainedHandler struct {
	Name string `json:"name"`
	// Kind is empty for a handler of an extension, and otherwise HandlerChain, ExtensionConfig or, for a handler without a
	// server, that of its object, such as HookRule.
	Kind string `json:"kind,omitempty"`
	// Member is the ExtensionConfig that answers for the Cluster as a member of an ExtensionRollout.
	Member string `json:"member,omitempty"`
	// Turn counts from 1. Handlers with the same turn are called at the same time. Zero means that it is not called.
	Turn int `json:"turn"`
	// Audits means that it is a HookRule with action: Audit, whose answer the caller does not get.
	Audits bool `json:"audits,omitempty"`
	// Excluded says why it is not called.
	Excluded *Exclusion `json:"excluded,omitempty"`
	// Fails says why its call fails at once.
	Fails string `json:"fails,omitempty"`

	Order *int32 `json:"order,omitempty"`
	// TimeoutSeconds is the time that the call may take, at most. The steps of a chain, and handlers with an order, have
	// what those before them have left.
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
	FailurePolicy  string  `json:"failurePolicy,omitempty"`
	// HookVersion is the version of the hook that it implements. Requests in another version are converted to it.
	HookVersion string `json:"hookVersion,omitempty"`
	// ClusterAPIVersion is the version to which Cluster API's objects are converted. Empty means that they are not.
	ClusterAPIVersion string `json:"clusterAPIVersion,omitempty"`
	// ClusterAPIRelease is the release of Cluster API whose requests the handler gets. Empty means that of the caller.
	ClusterAPIRelease string `json:"clusterAPIRelease,omitempty"`
	// Messages is Steady if what changes from call to call is masked in its messages.
	Messages string `json:"messages,omitempty"`
	// LiftedBy is the ExtensionPolicy that lets the Cluster go on if the handler holds it.
	LiftedBy string `json:"liftedBy,omitempty"`
	// OnHold is Stop for a step of a chain while whose hold the steps after it are not called.
	OnHold string `json:"onHold,omitempty"`
	// CacheSeconds is how long an answer is kept.
	CacheSeconds int64 `json:"cacheSeconds,omitempty"`
	// Policy names the ExtensionPolicy that applies.
	Policy string `json:"policy,omitempty"`
	// Steps are those of a chain, in its order.
	Steps []ExplainedHandler `json:"steps,omitempty"`
	// Answer is the answer of a step, if it was called.
	Answer *ExplainedAnswer `json:"answer,omitempty"`
}

// called returns the registered name of the handler that is called, which is that of the member.
func (h *ExplainedHandler) called() string {
	if handler, _, ok := strings.Cut(h.Name, "."); ok && h.Member != "" {
		return handler + "." + h.Member
	}
	return h.Name
}

// Exclusion is the one reason why a handler is not called.
type Exclusion struct {
	// By is what excludes it: namespaceSelector, objectSelector, matchCondition, hooks, onUndiscovered, undiscovered,
	// chain, optional, missing, name, steps, member if no member of the ExtensionRollout answers, or failure if nothing
	// but the failure of the whole call does.
	By string `json:"by"`
	// Message is the reason with its values.
	Message string `json:"message"`
}

// ExplainedAnswer is the answer to a request, or of a step of a chain.
type ExplainedAnswer struct {
	Error    *ExplainedError `json:"error,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
	// Audited is what a HookRule with action: Audit would have answered, if that is not just a success.
	Audited string `json:"audited,omitempty"`
	// Objects are the objects that the patches of the answer change, with these applied as Cluster API applies them.
	Objects []ExplainedObject `json:"objects,omitempty"`
	// LeftOut says that the explanation had no room for the response or the objects.
	LeftOut bool `json:"leftOut,omitempty"`
}

// ExplainedObject is an object of a request.
type ExplainedObject struct {
	// UID is that of an item of GeneratePatches, and Name says what the item is for. An object of an update in place has
	// the name of its member, such as machine.
	UID    string          `json:"uid,omitempty"`
	Name   string          `json:"name"`
	Object json.RawMessage `json:"object"`
}
