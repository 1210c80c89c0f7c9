// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateMachine is the infrastructure of a Machine, made by the extension of the Cluster's InfrastructureClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgatemachines,scope=Namespaced,shortName=hgm,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind=='Machine')].name",description="The Machine"
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Whether the machine has been provisioned"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the machine is there as it should be"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".status.conditions[?(@.type=='Ready')].lastTransitionTime",description="The time since Ready changed"
// +kubebuilder:printcolumn:name="Failure Domain",type="string",JSONPath=".status.failureDomain",description="The failure domain of the machine"
// +kubebuilder:printcolumn:name="Provider ID",type="string",priority=1,JSONPath=".spec.providerID",description="The provider ID of the machine and its Node"
// +kubebuilder:printcolumn:name="Synced",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status",description="Whether the last call to the extension succeeded"
// +kubebuilder:printcolumn:name="Failure",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].message",description="Why the last call to the extension failed"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What the object waits for"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="External ID",type="string",priority=1,JSONPath=".spec.externalID",description="The name of the machine outside"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired machine. It may be empty.
	// +required
	Spec HookgateMachineSpec `json:"spec"`

	// status is the observed machine.
	// +optional
	Status HookgateMachineStatus `json:"status,omitzero"`
}

// HookgateMachineSpec is the desired infrastructure of a Machine. It has no failure domain: Cluster API would copy it
// over the failure domain of the Machine, which the controller follows.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || (has(self.externalID) && self.externalID == oldSelf.externalID)",message="externalID must not change: it names everything in the backend"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID must not change: it names the machine that was made"
type HookgateMachineSpec struct {
	// parameters are values that are passed to the extension. The schema of the parameters is in status.schemas.machine of
	// the Cluster's InfrastructureClass.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// providerID names the machine and its Node. The controller writes it once, from the extension's answer. Once
	// a HookgateMachine has a provider ID, its machine is never created again.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// externalID names everything in the backend that belongs to the machine. The controller sets it before the first
	// call to the extension. externalID must not change, and is kept when the object is moved to another management
	// cluster or restored from a backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// HookgateMachineStatus is the observed infrastructure of a Machine.
type HookgateMachineStatus struct {
	// conditions holds the conditions Ready, Synced, ParametersValid and Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API waits for when it sets up the Machine.
	// +optional
	Initialization Initialization `json:"initialization,omitzero"`

	// addresses are the addresses of the machine.
	// +optional
	Addresses clusterv1.MachineAddresses `json:"addresses,omitempty"`

	// failureDomain is the failure domain that the machine is in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
}

// GetConditions returns the conditions of the HookgateMachine.
func (m *HookgateMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the HookgateMachine.
func (m *HookgateMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// HookgateMachineList is a list of HookgateMachines.
//
// +kubebuilder:object:root=true
type HookgateMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateMachine `json:"items"`
}
