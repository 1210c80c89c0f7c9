// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExtensionPolicy is an operator's policy for calls to the handlers of an extension, which its author registers with an
// ExtensionConfig. If the policy of one handler omits a field, the policy for all handlers of the ExtensionConfig sets
// the field. If both policies omit a field, the value that the extension declares is used.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionpolicies,scope=Cluster,shortName=extpol,categories={cluster-api,hookgate}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Extension",type="string",JSONPath=".spec.targetRef.name",description="The ExtensionConfig that the policy applies to"
// +kubebuilder:printcolumn:name="Handler",type="string",JSONPath=".spec.targetRef.handler",description="The handler that the policy applies to; empty for all"
// +kubebuilder:printcolumn:name="Accepted",type="string",JSONPath=".status.conditions[?(@.type=='Accepted')].status",description="Whether the policy is in effect"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Accepted')].reason",description="The reason of the condition Accepted"
// +kubebuilder:printcolumn:name="Timeout",type="integer",priority=1,JSONPath=".spec.timeoutSeconds",description="The timeout of a call in seconds"
// +kubebuilder:printcolumn:name="Failure Policy",type="string",priority=1,JSONPath=".spec.failurePolicy",description="The result of a call that could not be completed"
// +kubebuilder:printcolumn:name="Order",type="integer",priority=1,JSONPath=".spec.order",description="The position in the sequence of handlers, lowest first"
// +kubebuilder:printcolumn:name="Protocol",type="string",priority=1,JSONPath=".spec.protocol",description="The protocol of the extension"
// +kubebuilder:printcolumn:name="Cluster API",type="string",priority=1,JSONPath=".spec.clusterAPIVersion",description="The version of Cluster API objects that the handlers understand"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ExtensionPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object. Of several policies for the same target, the oldest one is in effect. If
	// they are of the same age, the one whose name sorts first is in effect.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired policy.
	// +required
	Spec ExtensionPolicySpec `json:"spec,omitzero"`

	// status is the observed state of the policy.
	// +optional
	Status ExtensionPolicyStatus `json:"status,omitzero"`
}

// ExtensionPolicySpec is the target of a policy, and what it changes there.
//
// +kubebuilder:validation:XValidation:rule="has(self.timeoutSeconds) || has(self.failurePolicy) || has(self.order) || has(self.objectSelector) || has(self.matchConditions) || has(self.protocol) || has(self.clusterAPIVersion) || has(self.clusterAPIRelease) || has(self.limits) || has(self.circuit) || has(self.cache) || has(self.hooks) || has(self.onUndiscovered) || has(self.offerAs) || has(self.messages) || has(self.liftedHolds)",message="must set at least one of protocol, clusterAPIVersion, clusterAPIRelease, timeoutSeconds, failurePolicy, order, objectSelector, matchConditions, limits, circuit, cache, hooks, onUndiscovered, offerAs, messages and liftedHolds"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterAPIVersion) || !has(self.clusterAPIRelease) || (self.clusterAPIVersion == 'v1beta1' ? int(self.clusterAPIRelease.substring(3)) <= 12 : int(self.clusterAPIRelease.substring(3)) >= 12)",message="clusterAPIVersion contradicts clusterAPIRelease: Cluster API v1.11 and older send v1beta1, v1.12 sends both, and v1.13 and newer send v1beta2"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || !has(self.targetRef.handler)",message="protocol is for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.targetRef.handler)",message="limits are for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.circuit) || !has(self.targetRef.handler)",message="circuit is for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.cache) || !has(self.targetRef.handler)",message="cache is for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.hooks) || !has(self.targetRef.handler)",message="hooks are for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.onUndiscovered) || !has(self.targetRef.handler)",message="onUndiscovered is for all handlers of an extension: leave targetRef.handler out"
// +kubebuilder:validation:XValidation:rule="!has(self.offerAs) || !has(self.targetRef.handler)",message="offerAs is for all handlers of an extension: leave targetRef.handler out"
type ExtensionPolicySpec struct {
	// targetRef selects the handlers that the policy applies to.
	// +required
	TargetRef TargetReference `json:"targetRef,omitzero"`

	// protocol is the protocol of the extension. REST, the default, is the JSON over HTTPS of Cluster API. GRPC means the
	// services of the contract, with TLS, at the same address. This field applies to the whole extension, so a policy for
	// one handler cannot set it.
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`

	// clusterAPIVersion is the version of the API group cluster.x-k8s.io, v1beta1 or v1beta2, that the handlers understand
	// in requests. Objects of the other version are converted for the handlers, and the answers of the handlers are
	// converted back. This field overrides the version that a gRPC extension states. If neither the policy nor the
	// extension states a version, objects are not converted.
	// +optional
	ClusterAPIVersion ClusterAPIVersion `json:"clusterAPIVersion,omitempty"`

	// clusterAPIRelease is the minor release of Cluster API whose requests the handlers understand, such as v1.12. What
	// later releases have added is removed from requests, and the patches in answers are applied to the complete objects.
	// Cluster API objects have the version that the release sent for the hook, unless clusterAPIVersion names another
	// version. If the release is newer than the caller, nothing is added to requests.
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,2}$`
	// +kubebuilder:validation:MaxLength=5
	// +optional
	ClusterAPIRelease string `json:"clusterAPIRelease,omitempty"`

	// timeoutSeconds is the timeout of one call. It overrides the timeout that the extension declares for the handler.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failurePolicy decides the result of a call that could not be completed: Fail fails the call, Ignore continues as
	// if the handler had succeeded without a result. It overrides the policy that the extension declares. Neither value
	// affects a Failure that a handler answers.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// order is the position of the handlers in a sequence, for hooks that several handlers answer. Handlers with an order
	// are called one after the other, lowest order first, and sorted by name if their order is the same. After them, all
	// handlers without an order are called at the same time. An error or a Failure ends the sequence, and later handlers
	// are not called. A handler that only holds the caller (retryAfterSeconds) does not end the sequence.
	// +optional
	Order *int32 `json:"order,omitempty"`

	// objectSelector restricts calls to requests about objects with matching labels: the Cluster, Machine or MachineSet of
	// the request. For GeneratePatches and ValidateTopology, the labels of the Cluster count. Requests of
	// DiscoverVariables are about no object, and always match.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions restricts calls to requests for which all conditions are true. They are evaluated after
	// namespaceSelector and objectSelector.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`

	// limits bounds the calls to the extension that are in flight or wait. This field applies to the whole extension, so a
	// policy for one handler cannot set it.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// circuit decides when calls to a failing handler or extension stop, and how soon the gateway tries again. This field
	// applies to the whole extension, so a policy for one handler cannot set it.
	// +optional
	Circuit *Circuit `json:"circuit,omitempty"`

	// cache keeps answers to GeneratePatches, ValidateTopology and DiscoverVariables, and answers equal requests with the
	// kept answers. By contract, these hooks are deterministic. Without cache, no answers are kept. This field applies to
	// the whole extension, so a policy for one handler cannot set it.
	// +optional
	Cache *Cache `json:"cache,omitempty"`

	// hooks are the names of hooks, such as BeforeClusterDelete. The extension may register only handlers of these hooks.
	// Handlers of other hooks wait: they are neither called nor offered to callers. Without hooks, the extension may
	// register handlers of all hooks. This field applies to the whole extension, so a policy for one handler cannot set
	// it.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Hooks []string `json:"hooks,omitempty"`

	// onUndiscovered decides the result of calls that go to all handlers of a hook while the handlers of the extension are
	// not known: Fail fails them, Ignore answers without the extension. The default is Fail for an extension that was
	// discovered before and, if the gateway reads a directory and records no state, for an extension that the gateway
	// finds when it starts. Otherwise, the default is Ignore. This field applies to the whole extension, so a policy for
	// one handler cannot set it.
	// +optional
	OnUndiscovered FailurePolicy `json:"onUndiscovered,omitempty"`

	// offerAs says under which names the gateway offers the handlers of hooks that are called by name, such as
	// GeneratePatches. Qualified, the default, adds the name of the ExtensionConfig: <handler>--<ExtensionConfig>.
	// Original leaves the names as the extension has them; a name that also means something else stays qualified, and the
	// condition Accepted says so. This field applies to the whole extension, so a policy for one handler cannot set it.
	// +optional
	OfferAs OfferAs `json:"offerAs,omitempty"`

	// messages says what becomes of the messages of answers, which callers put into conditions. Verbatim, the default,
	// passes them on. Steady replaces times, durations, identifiers, counters of calls and ports of clients with
	// placeholders, such as <time>, so that a message changes only if its meaning changes. Progress, such as 3 of 10,
	// stays.
	// +optional
	Messages Messages `json:"messages,omitempty"`

	// liftedHolds lifts holds, so that Clusters go on. Each entry is for one handler, one hook and one Cluster. The
	// handler is still called each time, and a Failure is not lifted. An entry does not apply to another Cluster of
	// the same name, or to an upgrade to another version. Holds of HookRules are lifted by an annotation of the
	// Cluster.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +optional
	LiftedHolds []LiftedHold `json:"liftedHolds,omitempty"`
}

// LiftedHold is a hold that is lifted: one handler holds one Cluster at one hook.
type LiftedHold struct {
	// handler is the name of the handler that holds, as handler.extension, such as before-delete.acme. targetRef must
	// select this handler.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=127
	// +required
	Handler string `json:"handler,omitempty"`

	// hook is the lifecycle hook at which the Cluster waits, such as BeforeClusterDelete.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Hook string `json:"hook,omitempty"`

	// cluster is the Cluster, as namespace/name.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=317
	// +required
	Cluster string `json:"cluster,omitempty"`

	// uid is metadata.uid of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	UID string `json:"uid,omitempty"`

	// version is the Kubernetes version of the upgrade, such as v1.35.0: the value of toKubernetesVersion or
	// kubernetesVersion in the request. For hooks that have neither field, version must be absent.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Version string `json:"version,omitempty"`
}

// Limits bounds the calls to an extension. Each replica of the gateway counts its own calls.
//
// +kubebuilder:validation:MinProperties=1
type Limits struct {
	// maxInFlight is the number of calls that may be in flight at the same time. Further calls wait. The default is
	// 256.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	// +optional
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`

	// maxWaiting is the number of calls that may wait, each up to its timeout. Further calls fail at once, like calls
	// to an extension that cannot be reached. The default is 1024.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	// +optional
	MaxWaiting *int32 `json:"maxWaiting,omitempty"`
}

// Cache configures which answers of an extension are kept. Each replica of the gateway keeps its own answers, in a
// small part of its memory. The answers that were used least recently make room for new ones.
type Cache struct {
	// ttlSeconds is how long an answer is kept. After an extension is replaced by another version at the same URL,
	// answers of the old version may be used for that time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +required
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
}

// Circuit configures the circuits of an extension: one for each handler, which opens after errors of the handler, and
// one for the server, which opens if the server is gone. While a circuit is open, calls fail at once, like calls to an
// extension that cannot be reached, except for one call at a time that probes whether calls succeed again. A Failure
// that a handler answers never opens a circuit. Each replica of the gateway has its own circuits.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.minOpenSeconds) || !has(self.maxOpenSeconds) || self.minOpenSeconds <= self.maxOpenSeconds",message="maxOpenSeconds must not be less than minOpenSeconds"
type Circuit struct {
	// mode is Enabled, the default, or Disabled. With Disabled, the extension is always called.
	// +optional
	Mode CircuitMode `json:"mode,omitempty"`

	// consecutiveFailures is the number of failures without a success in between that opens the circuit. The default
	// is 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	ConsecutiveFailures *int32 `json:"consecutiveFailures,omitempty"`

	// failureRatePercent is the percentage of failures among the calls of the last 30 seconds that opens the circuit,
	// if there were at least 20 calls. The default is 80.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureRatePercent *int32 `json:"failureRatePercent,omitempty"`

	// minOpenSeconds is the time until the first probe. Each probe that fails doubles the time until the next probe. The
	// default is 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MinOpenSeconds *int32 `json:"minOpenSeconds,omitempty"`

	// maxOpenSeconds is the longest time between two probes. The default is 60, or minOpenSeconds if that is more.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MaxOpenSeconds *int32 `json:"maxOpenSeconds,omitempty"`
}

// CircuitMode decides whether an extension has a circuit.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type CircuitMode string

// The modes of circuits.
const (
	CircuitModeEnabled  CircuitMode = "Enabled"
	CircuitModeDisabled CircuitMode = "Disabled"
)

// TargetReference names an ExtensionConfig, or one of its handlers.
type TargetReference struct {
	// name is the name of the ExtensionConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +required
	Name string `json:"name,omitempty"`

	// handler is the name of one handler as the extension's discovery returns it, without the name of the ExtensionConfig.
	// If it is empty, the policy applies to all handlers of the ExtensionConfig. If a handler also has a policy of its
	// own, the policy for all handlers supplies the fields that the handler's own policy omits.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label; leave out the name of the ExtensionConfig"
	// +optional
	Handler string `json:"handler,omitempty"`
}

// Protocol is the protocol of an extension.
//
// +kubebuilder:validation:Enum=REST;GRPC
type Protocol string

// The protocols.
const (
	ProtocolREST Protocol = "REST"
	ProtocolGRPC Protocol = "GRPC"
)

// ClusterAPIVersion is a version of the API group cluster.x-k8s.io.
//
// +kubebuilder:validation:Enum=v1beta1;v1beta2
type ClusterAPIVersion string

// The versions of Cluster API objects.
const (
	ClusterAPIVersionV1Beta1 ClusterAPIVersion = "v1beta1"
	ClusterAPIVersionV1Beta2 ClusterAPIVersion = "v1beta2"
)

// OfferAs says under which names handlers are offered.
//
// +kubebuilder:validation:Enum=Qualified;Original
type OfferAs string

// The names of handlers.
const (
	OfferAsQualified OfferAs = "Qualified"
	OfferAsOriginal  OfferAs = "Original"
)

// Messages says what becomes of the messages of answers.
//
// +kubebuilder:validation:Enum=Verbatim;Steady
type Messages string

// What becomes of messages.
const (
	MessagesVerbatim Messages = "Verbatim"
	MessagesSteady   Messages = "Steady"
)

// FailurePolicy decides the result of a call that could not be completed.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

// The failure policies.
const (
	FailurePolicyFail   FailurePolicy = "Fail"
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// MatchCondition is a condition on requests.
type MatchCondition struct {
	// name identifies the condition in messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"
	// +required
	Name string `json:"name,omitempty"`

	// expression is a CEL expression (https://cel.dev) that is true for the requests that the handler is called for. Its
	// variable request is the JSON of the request, as in request.cluster.metadata.name. Test for optional members with
	// has(…) first: if an expression fails, the call counts as not completed, and failurePolicy decides its result.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression,omitempty"`
}

// ExtensionPolicyStatus is the observed state of a policy.
type ExtensionPolicyStatus struct {
	// conditions holds the condition Accepted, which says whether the policy is in effect, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AcceptedCondition is the type of the condition that says whether a policy is in effect.
const AcceptedCondition = "Accepted"

// The reasons of the condition Accepted.
const (
	// AcceptedReason means that the policy is in effect.
	AcceptedReason = "Accepted"
	// InvalidReason means that the policy has a mistake. Its last valid content, if any, stays in effect.
	InvalidReason = "Invalid"
	// TargetNotFoundReason means that the ExtensionConfig or handler does not exist yet, or that a hold is lifted for
	// a handler that does not exist yet. A policy takes effect as soon as its target appears.
	TargetNotFoundReason = "TargetNotFound"
	// NameCollisionReason means that the policy is in effect, except that handlers are not offered under their own names,
	// because these names also mean something else.
	NameCollisionReason = "NameCollision"
	// ConflictedReason means that another policy is in effect for the target.
	ConflictedReason = "Conflicted"
)

// ExtensionPolicyList is a list of ExtensionPolicies.
//
// +kubebuilder:object:root=true
type ExtensionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ExtensionPolicy `json:"items"`
}
