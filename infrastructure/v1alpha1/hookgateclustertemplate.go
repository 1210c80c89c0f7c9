// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateClusterTemplate is a template of HookgateClusters, for ClusterClasses. The spec of the template must not
// change.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgateclustertemplates,scope=Namespaced,shortName=hgct,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Class",type="string",JSONPath=".spec.template.spec.infrastructureClassName",description="The InfrastructureClass"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the template.
	// +required
	Spec HookgateClusterTemplateSpec `json:"spec,omitzero"`
}

// HookgateClusterTemplateSpec holds the template of HookgateClusters.
type HookgateClusterTemplateSpec struct {
	// template is what HookgateClusters are made from.
	// +required
	Template HookgateClusterTemplateResource `json:"template,omitzero"`
}

// HookgateClusterTemplateResource is what HookgateClusters are made from.
type HookgateClusterTemplateResource struct {
	// metadata holds labels and annotations of the HookgateClusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the spec of the HookgateClusters, without the fields that the controller writes.
	// +required
	Spec HookgateClusterTemplateResourceSpec `json:"spec,omitzero"`
}

// HookgateClusterTemplateResourceSpec is the spec of HookgateClusters, without the fields that the controller writes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsRef) || !has(self.credentialsRef.namespace)",message="credentialsRef.namespace must be left out: each HookgateCluster uses the Secret in its own namespace"
// +kubebuilder:validation:XValidation:rule="!has(self.identityRef) || !has(self.credentialsRef)",message="only one of identityRef and credentialsRef can be set: both name credentials"
type HookgateClusterTemplateResourceSpec struct {
	// infrastructureClassName is the name of the InfrastructureClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	InfrastructureClassName string `json:"infrastructureClassName,omitempty"`

	// parameters are values that are passed to the extension for the Cluster.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// credentialsRef names a Secret in the namespace of each HookgateCluster. The data of the Secret is sent to the
	// extension.
	// +optional
	CredentialsRef *SecretReference `json:"credentialsRef,omitempty"`

	// identityRef names the HookgateClusterIdentity that the extension uses.
	// +optional
	IdentityRef *IdentityReference `json:"identityRef,omitempty"`
}

// HookgateClusterTemplateList is a list of HookgateClusterTemplates.
//
// +kubebuilder:object:root=true
type HookgateClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateClusterTemplate `json:"items"`
}
