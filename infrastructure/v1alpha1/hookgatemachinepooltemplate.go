// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateMachinePoolTemplate is a template of HookgateMachinePools, for ClusterClasses. The spec of the template must
// not change.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgatemachinepooltemplates,scope=Namespaced,shortName=hgmpt,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateMachinePoolTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +required
	Spec HookgateMachinePoolTemplateSpec `json:"spec,omitzero"`
}

// HookgateMachinePoolTemplateSpec holds the template of HookgateMachinePools.
type HookgateMachinePoolTemplateSpec struct {
	// template is what HookgateMachinePools are made from.
	// +required
	Template HookgateMachinePoolTemplateResource `json:"template"`
}

// HookgateMachinePoolTemplateResource is what HookgateMachinePools are made from.
type HookgateMachinePoolTemplateResource struct {
	// metadata holds labels and annotations of the HookgateMachinePools.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the spec of the HookgateMachinePools, without the fields that the controller writes. It may be empty.
	// +required
	Spec HookgateMachinePoolTemplateResourceSpec `json:"spec"`
}

// HookgateMachinePoolTemplateResourceSpec is the spec of HookgateMachinePools, without the fields that the controller
// writes.
type HookgateMachinePoolTemplateResourceSpec struct {
	// parameters are values that are passed to the extension for the pool.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// instanceManagement decides how Cluster API sees the instances: as Machines (the default) or as a Group.
	// +optional
	InstanceManagement InstanceManagement `json:"instanceManagement,omitempty"`
}

// HookgateMachinePoolTemplateList is a list of HookgateMachinePoolTemplates.
//
// +kubebuilder:object:root=true
type HookgateMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateMachinePoolTemplate `json:"items"`
}
