// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HookgateRemediationTemplate is a template from which a MachineHealthCheck makes HookgateRemediations. The
// MachineHealthCheck names the template in spec.remediation.templateRef.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgateremediationtemplates,scope=Namespaced,shortName=hgrt,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io="
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:printcolumn:name="Handler",type="string",JSONPath=".spec.template.spec.handler",description="The handler of RemediateMachine"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateRemediationTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +required
	Spec HookgateRemediationTemplateSpec `json:"spec,omitzero"`
}

// HookgateRemediationTemplateSpec holds the template of HookgateRemediations.
type HookgateRemediationTemplateSpec struct {
	// template is what HookgateRemediations are made from.
	// +required
	Template HookgateRemediationTemplateResource `json:"template"`
}

// HookgateRemediationTemplateResource is what HookgateRemediations are made from.
type HookgateRemediationTemplateResource struct {
	// spec is the spec of the HookgateRemediations. It may be empty.
	// +kubebuilder:validation:XValidation:rule="!has(self.progress)",message="progress must not be set in a template: it belongs to one remediation"
	// +required
	Spec HookgateRemediationSpec `json:"spec"`
}

// HookgateRemediationTemplateList is a list of HookgateRemediationTemplates.
//
// +kubebuilder:object:root=true
type HookgateRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateRemediationTemplate `json:"items"`
}
