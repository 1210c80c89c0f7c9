// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HookRule is a handler that has no server: the gateway answers its hook with expressions in CEL (https://cel.dev).
// Callers see one handler with the registered name rule.<name of the HookRule>.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookrules,scope=Cluster,shortName=hrule,categories={cluster-api,hookgate}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Hook",type="string",JSONPath=".spec.hook",description="The hook that the rule answers"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the rule is in effect"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What keeps the rule from being in effect"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1123 label of at most 63 characters: it is the name of a handler"
type HookRule struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object. Its name is a DNS-1123 label that no ExtensionConfig and no HandlerChain
	// has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired rule.
	// +required
	Spec HookRuleSpec `json:"spec,omitzero"`

	// status is the observed state of the rule.
	// +optional
	Status HookRuleStatus `json:"status,omitzero"`
}

// HookRuleAction says whether the answers of a rule count.
// +kubebuilder:validation:Enum=Enforce;Audit
type HookRuleAction string

// The actions. Enforce is the default.
const (
	HookRuleEnforce HookRuleAction = "Enforce"
	HookRuleAudit   HookRuleAction = "Audit"
)

// HookRuleSpec is the desired rule. The hook decides which fields the rule may have: hold, fail, windows and
// concurrency are for lifecycle hooks, allow for CanUpdateMachine and CanUpdateMachineSet, patches for GeneratePatches,
// variables for DiscoverVariables and validations for ValidateTopology.
// +kubebuilder:validation:XValidation:rule="self.hook == oldSelf.hook || !has(self.concurrency) || !has(oldSelf.concurrency)",message="hook of a rule with concurrency cannot change: Clusters that have places are past the previous hook"
type HookRuleSpec struct {
	// hook is the name of the hook that the rule answers, such as BeforeClusterUpgrade.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Hook string `json:"hook,omitempty"`

	// action is Enforce, the default, or Audit. A rule with Audit answers as if nothing applied, even if an
	// expression cannot be evaluated. What it would have answered is counted, logged and, in a cluster, reported as
	// an event of the HookRule. Rules of DiscoverVariables, CanUpdateMachine and CanUpdateMachineSet have no Audit.
	// +optional
	Action HookRuleAction `json:"action,omitempty"`

	// namespaceSelector restricts the rule to requests about objects in namespaces with matching labels, as the
	// namespaceSelector of an ExtensionConfig does.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector restricts the rule to requests about objects with matching labels: the Cluster, Machine or MachineSet
	// of the request. For GeneratePatches and ValidateTopology, the labels of the Cluster count. Requests of
	// DiscoverVariables are about no object, and always match.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions restricts the rule to requests for which all conditions are true. They are evaluated after
	// namespaceSelector and objectSelector. If the evaluation of a condition fails, the call of the rule fails.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`

	// clusterAPIVersion is the version of the API group cluster.x-k8s.io, v1beta1 or v1beta2, in which expressions see the
	// objects of requests. Objects of the other version are converted for the rule. Without it, the objects are as the
	// caller sent them.
	// +optional
	ClusterAPIVersion ClusterAPIVersion `json:"clusterAPIVersion,omitempty"`

	// params are objects that expressions read besides the request, as params.<name>. The gateway watches these objects,
	// so that no call waits for the API server; the gateway's copies may be a moment old. The gateway needs the right to
	// list and watch these objects: "hookgate rule rbac" prints the manifests. Until the gateway knows the objects, calls
	// of the rule fail with NotReady. Rules in a directory cannot have params.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Params []HookRuleParam `json:"params,omitempty"`

	// concurrency bounds the number of Clusters that are past a blocking lifecycle hook at the same time. A Cluster takes
	// a place when nothing else in the rule holds the Cluster or fails, no matter what other handlers answer. The Cluster
	// keeps the place until the hook that follows is called: AfterControlPlaneInitialized for BeforeClusterCreate; the
	// After… hook of the same name for BeforeClusterUpgrade, BeforeControlPlaneUpgrade and BeforeWorkersUpgrade. The place
	// is free earlier if the Cluster is gone or, for upgrades, if its spec.topology.version has changed. Rules in a
	// directory cannot have concurrency.
	// +optional
	Concurrency *HookRuleConcurrency `json:"concurrency,omitempty"`

	// hold makes a blocking lifecycle hook wait: the answer is Success with retryAfterSeconds while one of the entries
	// applies. The first entry that applies gives the message.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Hold []HookRuleHold `json:"hold,omitempty"`

	// fail makes a lifecycle hook fail: the answer is Failure while one of the entries applies, whatever hold says. The
	// first entry that applies gives the message.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Fail []HookRuleFailure `json:"fail,omitempty"`

	// allow lists what may change in place. It is for CanUpdateMachine and CanUpdateMachineSet, whose paths differ, so
	// each of the two hooks needs its own rule. The answer has patches that change these paths of the current objects to
	// the values of the desired objects, and nothing else. The extension that answers UpdateMachine makes the change.
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Allow []HookRuleAllow `json:"allow,omitempty"`

	// windows makes a blocking lifecycle hook wait while no window is open, whatever hold says. The message says when the
	// next window opens. fail takes precedence over windows.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Windows []HookRuleWindow `json:"windows,omitempty"`

	// patches are the answer to GeneratePatches. For each template, they are made in this order, and each patch sees the
	// template as the patches before it have changed it.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Patches []HookRulePatch `json:"patches,omitempty"`

	// variables are the answer to DiscoverVariables.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Variables []HookRuleVariable `json:"variables,omitempty"`

	// validations make ValidateTopology fail: the answer is Failure if one of the entries applies. The message has the
	// messages of all entries that apply, in their order.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Validations []HookRuleValidation `json:"validations,omitempty"`
}

// HookRuleHold holds the caller of a blocking hook.
//
// +kubebuilder:validation:XValidation:rule="has(self.if) != has(self.unless)",message="must have one of if and unless"
type HookRuleHold struct {
	HookRuleDecision `json:",inline"`

	// retryAfterSeconds is how soon the caller should call again. The default is 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`
}

// HookRuleFailure fails the call.
//
// +kubebuilder:validation:XValidation:rule="has(self.if) != has(self.unless)",message="must have one of if and unless"
type HookRuleFailure struct {
	HookRuleDecision `json:",inline"`
}

// HookRuleDecision says when an entry applies, and which message the answer then has. Its expressions have the
// variables request (the JSON of the request), params and, for lifecycle hooks, now (the time of the call).
type HookRuleDecision struct {
	// if is an expression that is true if the entry applies.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	If string `json:"if,omitempty"`

	// unless is an expression that is false if the entry applies.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Unless string `json:"unless,omitempty"`

	// message is an expression whose value is the message of the answer, a text. It should be the same while nothing
	// changes: Cluster API writes it into a condition.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Message string `json:"message,omitempty"`
}

// HookRuleStatus is the observed state of a rule.
type HookRuleStatus struct {
	// conditions holds the condition Ready, which says whether the rule is in effect, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AuditReason is the reason of a condition Ready that is true: the rule is in effect, with action: Audit.
const AuditReason = "Audit"

// WithheldReason is the reason of a condition Ready that is not true because spec.hooks of an ExtensionPolicy does
// not list the hook. The other reasons are those of HandlerChains.
const WithheldReason = "Withheld"

// HookRuleList is a list of HookRules.
//
// +kubebuilder:object:root=true
type HookRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookRule `json:"items"`
}
