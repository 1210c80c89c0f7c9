// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HandlerChain is a handler that consists of registered handlers of one hook. Callers see one handler with the name
// of the chain; the gateway calls its steps, and merges their answers into one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=handlerchains,scope=Cluster,shortName=hchain,categories={cluster-api,hookgate}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Hook",type="string",JSONPath=".spec.hook",description="The hook that the chain answers"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the chain can be called"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Steps",type="string",priority=1,JSONPath=".spec.steps[*].handler",description="The handlers that the chain consists of, in their order"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What keeps the chain from being called"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1123 label of at most 63 characters: it is the name of a handler"
type HandlerChain struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object. Its name is the name of the handler, a DNS-1123 label that no
	// ExtensionConfig has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired chain.
	// +required
	Spec HandlerChainSpec `json:"spec,omitzero"`

	// status is the observed state of the chain.
	// +optional
	Status HandlerChainStatus `json:"status,omitzero"`
}

// HandlerChainSpec is the desired chain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onPartialCoverage) || self.hook in ['CanUpdateMachine', 'CanUpdateMachineSet']",message="onPartialCoverage is for the hooks CanUpdateMachine and CanUpdateMachineSet"
// +kubebuilder:validation:XValidation:rule="self.hook in ['CanUpdateMachine', 'CanUpdateMachineSet'] || !self.steps.exists(s, has(s.allow))",message="allow is for steps of the hooks CanUpdateMachine and CanUpdateMachineSet"
// +kubebuilder:validation:XValidation:rule="!(self.hook in ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine']) || !self.steps.exists(s, has(s.optional) && s.optional)",message="a step of an in-place hook cannot be optional: Machines would be updated, or replaced, without it"
// +kubebuilder:validation:XValidation:rule="!(self.hook in ['AfterClusterDelete', 'AfterControlPlaneInitialized', 'AfterMachineProvisioned', 'CanUpdateMachine', 'CanUpdateMachineSet', 'DiscoverVariables', 'GeneratePatches', 'GenerateUpgradePlan', 'UpdateMachine', 'ValidateTopology']) || !self.steps.exists(s, has(s.onHold))",message="onHold is for steps of lifecycle hooks that can hold; a chain of UpdateMachine always stops at a step that is not done"
type HandlerChainSpec struct {
	// hook is the name of the hook that the chain answers, such as GeneratePatches. All steps are handlers of this hook.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Hook string `json:"hook,omitempty"`

	// steps are the handlers that are called. For GeneratePatches, CanUpdateMachine, CanUpdateMachineSet, UpdateMachine,
	// GenerateUpgradePlan and lifecycle hooks, they are called in this order. For the first three of these hooks, each
	// step sees the objects as the steps before it have patched them. A step that holds ends the call if it has onHold:
	// Stop, and always ends the call for UpdateMachine. For ValidateTopology and DiscoverVariables, all steps are called
	// at the same time.
	// +listType=map
	// +listMapKey=handler
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Steps []HandlerChainStep `json:"steps,omitempty"`

	// onPartialCoverage decides the answer to CanUpdateMachine and CanUpdateMachineSet if the steps do not cover every
	// difference between the current and the desired objects. With Replace, the default, Cluster API gets the incomplete
	// answer, and replaces the Machines. With Block, the answer is a Failure that names the differences that are not
	// covered, so that Cluster API waits.
	// +optional
	OnPartialCoverage OnPartialCoverage `json:"onPartialCoverage,omitempty"`
}

// HandlerChainStep is one handler of a chain. The ExtensionPolicy of the handler applies as if the handler were called
// alone: a step whose objectSelector or matchConditions do not match is skipped. In chains of CanUpdateMachine,
// CanUpdateMachineSet and UpdateMachine, objectSelector matches the labels of the Cluster, so that a Machine and its
// MachineSet choose the same steps; matchConditions read the request, whose objects differ from hook to hook.
type HandlerChainStep struct {
	// handler is the registered name of the handler: <handler>.<ExtensionConfig>.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the registered name of a handler: <handler>.<ExtensionConfig>"
	// +required
	Handler string `json:"handler,omitempty"`

	// settings are added to the requests of the step. They take precedence over the settings of the ExtensionConfig.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Settings map[string]string `json:"settings,omitempty"`

	// optional says that the step is skipped while its handler is not registered. The chain still waits for a handler that
	// is registered but not known yet, because its extension was not discovered. optional cannot be set for in-place
	// hooks.
	// +optional
	Optional *bool `json:"optional,omitempty"`

	// allow lists the only paths that the step may change, as JSON pointers that begin with an object of the request:
	// /machine/spec/version, /infrastructureMachine/spec, /bootstrapConfig/spec/files; for CanUpdateMachineSet
	// /machineSet/spec/template/spec, /infrastructureMachineTemplate/spec/template/spec and
	// /bootstrapConfigTemplate/spec/template/spec. A patch of another path makes the answer invalid. Without allow,
	// the step may change everything.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^/[^/]"
	// +optional
	Allow []string `json:"allow,omitempty"`

	// onHold decides whether the later steps are called while this step holds the caller, with retryAfterSeconds in a
	// Success. With Continue, the default, the later steps are called. With Stop, the later steps are called only after
	// this step has let the caller go on, or its hold is lifted. onHold is for lifecycle hooks whose callers wait, such as
	// BeforeClusterUpgrade.
	// +optional
	OnHold OnHold `json:"onHold,omitempty"`
}

// OnHold decides what becomes of the steps after one that holds.
//
// +kubebuilder:validation:Enum=Continue;Stop
type OnHold string

// What becomes of the steps after one that holds.
const (
	OnHoldContinue OnHold = "Continue"
	OnHoldStop     OnHold = "Stop"
)

// OnPartialCoverage decides what becomes of a change that the steps of a chain cover in part.
//
// +kubebuilder:validation:Enum=Replace;Block
type OnPartialCoverage string

// What becomes of a change that is covered in part.
const (
	OnPartialCoverageReplace OnPartialCoverage = "Replace"
	OnPartialCoverageBlock   OnPartialCoverage = "Block"
)

// HandlerChainStatus is the observed state of a chain.
type HandlerChainStatus struct {
	// conditions holds the condition Ready, which says whether the chain can be called, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReadyCondition is the type of the condition that says whether a chain can be called.
const ReadyCondition = "Ready"

// The reasons of the condition Ready, besides InvalidReason and NameCollisionReason.
const (
	// ReadyReason means that every step has a handler.
	ReadyReason = "Ready"
	// StepMissingReason means that a step cannot be called: its handler is not registered, not known yet, or of another
	// hook. Calls of the chain fail.
	StepMissingReason = "StepMissing"
	// SeveralOfferedReason means that the chain can be called, but that the gateway offers several handlers of a hook for
	// which Cluster API allows one handler in all.
	SeveralOfferedReason = "SeveralOffered"
)

// HandlerChainList is a list of HandlerChains.
//
// +kubebuilder:object:root=true
type HandlerChainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HandlerChain `json:"items"`
}
