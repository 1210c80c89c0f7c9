// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateMachineTemplate is a template of HookgateMachines. The spec of the template must not change.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgatemachinetemplates,scope=Namespaced,shortName=hgmt,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Architecture",type="string",priority=1,JSONPath=".status.nodeInfo.architecture",description="The architecture of the machines"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +required
	Spec HookgateMachineTemplateSpec `json:"spec,omitzero"`

	// status says what machines of the template have, for an autoscaler that scales from zero, and whether it is paused.
	// +optional
	Status HookgateMachineTemplateStatus `json:"status,omitzero"`
}

// HookgateMachineTemplateSpec holds the template of HookgateMachines.
type HookgateMachineTemplateSpec struct {
	// template is what HookgateMachines are made from.
	// +required
	Template HookgateMachineTemplateResource `json:"template"`
}

// HookgateMachineTemplateResource is what HookgateMachines are made from.
type HookgateMachineTemplateResource struct {
	// metadata holds labels and annotations of the HookgateMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the spec of the HookgateMachines, without the fields that the controller writes. It may be empty.
	// +required
	Spec HookgateMachineTemplateResourceSpec `json:"spec"`
}

// HookgateMachineTemplateResourceSpec is the spec of HookgateMachines, without the fields that the controller writes.
type HookgateMachineTemplateResourceSpec struct {
	// parameters are values that are passed to the extension for each machine.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`
}

// HookgateMachineTemplateStatus says what machines of a template have.
type HookgateMachineTemplateStatus struct {
	// conditions holds the condition Paused of a template that belongs to a Cluster.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the resources of a machine of the template. The cluster autoscaler reads the field to scale from
	// zero.
	// +kubebuilder:validation:XValidation:rule="self.size() <= 64",message="must have at most 64 resources"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is what the Node of a machine of the template reports about itself.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitzero"`
}

// NodeInfo is what a Node says about itself.
//
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture is the architecture of the CPU, for the label kubernetes.io/arch.
	// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem is the operating system, for the label kubernetes.io/os.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// GetConditions returns the conditions of the template.
func (t *HookgateMachineTemplate) GetConditions() []metav1.Condition { return t.Status.Conditions }

// SetConditions replaces the conditions of the template.
func (t *HookgateMachineTemplate) SetConditions(conditions []metav1.Condition) {
	t.Status.Conditions = conditions
}

// HookgateMachineTemplateList is a list of HookgateMachineTemplates.
//
// +kubebuilder:object:root=true
type HookgateMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateMachineTemplate `json:"items"`
}
