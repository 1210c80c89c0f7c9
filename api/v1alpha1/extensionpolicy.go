// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExtensionPolicy says how the handlers of an extension are called: the author of an extension registers it with an
// ExtensionConfig, and the operator decides the rest here. A handler has at most one policy: the one that names it, or
// else the one that names its ExtensionConfig alone. What a policy leaves out stays as the extension has it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionpolicies,scope=Cluster,shortName=extpol,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Extension",type="string",JSONPath=".spec.targetRef.name",description="The ExtensionConfig that the policy is for"
// +kubebuilder:printcolumn:name="Handler",type="string",JSONPath=".spec.targetRef.handler",description="The handler that the policy is for; empty for all"
// +kubebuilder:printcolumn:name="Accepted",type="string",JSONPath=".status.conditions[?(@.type=='Accepted')].status",description="Whether the policy is in effect"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Accepted')].reason",description="Why"
// +kubebuilder:printcolumn:name="Timeout",type="integer",priority=1,JSONPath=".spec.timeoutSeconds",description="How long a call may take, in seconds"
// +kubebuilder:printcolumn:name="Failure Policy",type="string",priority=1,JSONPath=".spec.failurePolicy",description="What becomes of a call that could not be completed"
// +kubebuilder:printcolumn:name="Order",type="integer",priority=1,JSONPath=".spec.order",description="When the handler is called, lowest first"
// +kubebuilder:printcolumn:name="Protocol",type="string",priority=1,JSONPath=".spec.protocol",description="What the extension speaks"
// +kubebuilder:printcolumn:name="Cluster API",type="string",priority=1,JSONPath=".spec.clusterAPIVersion",description="The version of Cluster API objects that the handlers understand"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ExtensionPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is that of every object. Of two policies for the same target, the older one is in effect, and of two of the
	// same age the one whose name is first.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the operator wants.
	// +required
	Spec ExtensionPolicySpec `json:"spec,omitzero"`

	// status is what has become of it.
	// +optional
	Status ExtensionPolicyStatus `json:"status,omitzero"`
}

// ExtensionPolicySpec says for whom a policy is, and what it changes.
//
// +kubebuilder:validation:XValidation:rule="has(self.timeoutSeconds) || has(self.failurePolicy) || has(self.order) || has(self.objectSelector) || has(self.matchConditions) || has(self.protocol) || has(self.clusterAPIVersion)",message="must set at least one of protocol, clusterAPIVersion, timeoutSeconds, failurePolicy, order, objectSelector and matchConditions"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || !has(self.targetRef.handler)",message="protocol is for all handlers of an extension: leave targetRef.handler out"
type ExtensionPolicySpec struct {
	// targetRef is for whom the policy is.
	// +required
	TargetRef TargetReference `json:"targetRef,omitzero"`

	// protocol is what the extension speaks: REST is the JSON over HTTPS of Cluster API, which is meant without a policy; GRPC
	// are the services of the contract, with TLS, at the same address. It is for the whole extension, so that a policy for one
	// handler cannot say it.
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`

	// clusterAPIVersion is the version of the Cluster API objects in requests that the handlers understand: v1beta1 or v1beta2
	// of the API group cluster.x-k8s.io. Objects of the other version are converted for them, and what they answer is
	// converted back. It takes the place of what a gRPC extension states. Where nobody says, objects stay as they come.
	// +optional
	ClusterAPIVersion ClusterAPIVersion `json:"clusterAPIVersion,omitempty"`

	// timeoutSeconds bounds one call, in place of the timeout that the extension has for the handler.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failurePolicy says what becomes of a call that could not be completed, in place of what the extension says: Fail
	// fails it, Ignore goes on as if the handler had nothing to say. Neither touches a Failure that a handler answers.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// order makes the handlers of a hook that all of them answer be called one after the other, lowest order first, and by
	// name where it is the same. Handlers without an order are called at the same time, after those. An error or a Failure
	// ends the sequence: whoever would be next is not called. A handler that only holds the caller (retryAfterSeconds)
	// does not.
	// +optional
	Order *int32 `json:"order,omitempty"`

	// objectSelector lets the handler be called only for objects with matching labels: the Cluster, Machine or MachineSet
	// that the request is about. For GeneratePatches and ValidateTopology these are the labels of the Cluster. A request
	// that is about no object, which only DiscoverVariables has, matches.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions let the handler be called only for requests for which all of them are true. They are looked at
	// after namespaceSelector and objectSelector.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
}

// TargetReference names an ExtensionConfig, or one of its handlers.
type TargetReference struct {
	// name is the name of the ExtensionConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +required
	Name string `json:"name,omitempty"`

	// handler is the name of one handler, as the extension's discovery has it: without the name of the ExtensionConfig.
	// Without it, the policy is for all handlers of the ExtensionConfig that have no policy of their own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label, without the name of the ExtensionConfig"
	// +optional
	Handler string `json:"handler,omitempty"`
}

// Protocol is what an extension speaks.
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

// FailurePolicy says what becomes of a call that could not be completed.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type FailurePolicy string

// The failure policies.
const (
	FailurePolicyFail   FailurePolicy = "Fail"
	FailurePolicyIgnore FailurePolicy = "Ignore"
)

// MatchCondition is one condition on requests.
type MatchCondition struct {
	// name says in messages which condition it is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"
	// +required
	Name string `json:"name,omitempty"`

	// expression is a CEL expression (https://cel.dev) that is true for requests that the handler shall get. Its variable
	// request is the JSON of the request, as in request.cluster.metadata.name. What may be absent is asked for with
	// has(…) first: an expression that fails is a call that could not be completed, and failurePolicy decides.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Expression string `json:"expression,omitempty"`
}

// ExtensionPolicyStatus is what has become of a policy.
type ExtensionPolicyStatus struct {
	// conditions has the condition Accepted: whether the policy is in effect, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AcceptedCondition is the type of the condition that tells whether a policy is in effect.
const AcceptedCondition = "Accepted"

// The reasons of the condition Accepted.
const (
	// AcceptedReason is that of a policy that is in effect.
	AcceptedReason = "Accepted"
	// InvalidReason is that of a policy with a mistake. What it said before, if that was valid, stays in effect.
	InvalidReason = "Invalid"
	// TargetNotFoundReason is that of a policy whose ExtensionConfig or handler there is not yet.
	TargetNotFoundReason = "TargetNotFound"
	// ConflictedReason is that of a policy whose target has another one.
	ConflictedReason = "Conflicted"
)

// ExtensionPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type ExtensionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ExtensionPolicy `json:"items"`
}
