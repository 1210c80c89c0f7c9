// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HookgateClusterIdentity is an identity, such as a tenant, that the extension uses at its backend. The identity holds
// credentials, and selects the namespaces whose HookgateClusters may use the credentials. The identity belongs to the
// administrators of a management cluster. clusterctl move also moves the identity and its Secret. While an object uses
// the identity, the identity is not deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgateclusteridentities,scope=Cluster,shortName=hgci,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move-hierarchy="
// +kubebuilder:printcolumn:name="Credentials",type="string",JSONPath=".spec.credentialsRef.name",description="The Secret with the credentials"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the credentials can be used"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Movable",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='CredentialsMovable')].status",description="Whether clusterctl move takes the Secret along"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateClusterIdentity struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the credentials, and the namespaces that may use them.
	// +required
	Spec HookgateClusterIdentitySpec `json:"spec,omitzero"`

	// status is what was seen of the credentials.
	// +optional
	Status HookgateClusterIdentityStatus `json:"status,omitzero"`
}

// HookgateClusterIdentitySpec is the credentials of an identity, and the namespaces that may use them.
type HookgateClusterIdentitySpec struct {
	// credentialsRef names a Secret in the namespace of the controllers. The data of the Secret is sent to the extension
	// with every call for the Clusters of the identity. A change of the Secret reaches the extension within seconds. The
	// identity becomes an owner of the Secret, so the Secret is deleted with the identity.
	// +required
	CredentialsRef LocalSecretReference `json:"credentialsRef,omitzero"`

	// allowedNamespaces are the namespaces whose HookgateClusters may use the identity; selector: {} allows all
	// namespaces.
	// +required
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// HookgateClusterIdentityStatus is what was seen of the credentials of an identity.
type HookgateClusterIdentityStatus struct {
	// conditions holds the conditions Ready, CredentialsMovable and Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GetConditions returns the conditions of the identity.
func (i *HookgateClusterIdentity) GetConditions() []metav1.Condition { return i.Status.Conditions }

// SetConditions replaces the conditions of the identity.
func (i *HookgateClusterIdentity) SetConditions(conditions []metav1.Condition) {
	i.Status.Conditions = conditions
}

// HookgateClusterIdentityList is a list of HookgateClusterIdentities.
//
// +kubebuilder:object:root=true
type HookgateClusterIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateClusterIdentity `json:"items"`
}
