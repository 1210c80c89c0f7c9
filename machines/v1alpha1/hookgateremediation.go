// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HookgateRemediation is the remediation of one unhealthy Machine by the hook RemediateMachine. The Machine owns it. A
// MachineHealthCheck makes it, with the name of the Machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgateremediations,scope=Namespaced,shortName=hgr,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io="
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".spec.progress.phase",description="The step that the remediation has reached"
// +kubebuilder:printcolumn:name="Attempt",type="integer",JSONPath=".spec.progress.attempt",description="The attempt, from 1"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Remediating')].message",description="What the remediation waits for"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateRemediation struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says how the Machine is remediated. It may be empty.
	// +required
	Spec HookgateRemediationSpec `json:"spec"`

	// status says what the remediation waits for.
	// +optional
	Status HookgateRemediationStatus `json:"status,omitzero"`
}

// HookgateRemediationSpec says how a Machine is remediated.
type HookgateRemediationSpec struct {
	// handler is the registered name of the handler of RemediateMachine, such as reboot.acme. Without it, the handler that
	// matches the Machine is called, and exactly one handler must match.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Handler string `json:"handler,omitempty"`

	// settings are key-value pairs for the handler. They take precedence over the settings of the handler's
	// ExtensionConfig.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 253 && size(self[k]) <= 4096)",message="keys must have at most 253 characters, and values 4096"
	// +optional
	Settings map[string]string `json:"settings,omitempty"`

	// retryLimit is how many more attempts follow if the first attempt does not make the Machine healthy. When all
	// attempts are used up, the owner of the Machine replaces the Machine. If unset, retryLimit is 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	RetryLimit *int32 `json:"retryLimit,omitempty"`

	// timeoutSeconds is how long an attempt may take, from its first call until the Machine is healthy. If unset,
	// timeoutSeconds is 600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// progress is the state of the remediation. The controller sets progress. Unlike a status, progress is kept when the
	// object is moved to another management cluster or restored from a backup.
	// +optional
	Progress *RemediationProgress `json:"progress,omitempty"`
}

// RemediationProgress is the state of a remediation.
type RemediationProgress struct {
	// id is the remediationId of the requests of this remediation.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	ID string `json:"id,omitempty"`

	// phase is the step that the remediation has reached.
	// +required
	Phase Phase `json:"phase,omitempty"`

	// attempt is the attempt, from 1. It is unset while handlers of BeforeMachineRemediation hold the Machine.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// attemptStartTime is when RemediateMachine could be called for the first time in this attempt.
	// +optional
	AttemptStartTime metav1.Time `json:"attemptStartTime,omitzero"`
}

// Phase is the step that a remediation has reached.
//
// +kubebuilder:validation:Enum=Pending;Remediating;Verifying;OwnerRemediating
type Phase string

// The phases of a remediation.
const (
	// Pending means that handlers of BeforeMachineRemediation are called.
	Pending Phase = "Pending"
	// Remediating means that RemediateMachine is called.
	Remediating Phase = "Remediating"
	// Verifying means that RemediateMachine is done, and the Machine should become healthy.
	Verifying Phase = "Verifying"
	// OwnerRemediating means that the owner of the Machine replaces it.
	OwnerRemediating Phase = "OwnerRemediating"
)

// RemediatingCondition is the condition of a remediation: False when the owner of the Machine replaces the Machine. The
// reason is one of the phases, and the message says what the remediation waits for.
const RemediatingCondition = "Remediating"

// HookgateRemediationStatus says what a remediation waits for.
type HookgateRemediationStatus struct {
	// conditions holds the conditions Remediating and Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HookgateRemediationList is a list of HookgateRemediations.
//
// +kubebuilder:object:root=true
type HookgateRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateRemediation `json:"items"`
}
