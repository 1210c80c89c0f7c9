// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateCluster is the infrastructure of a Cluster, made by the extension of an InfrastructureClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgateclusters,scope=Namespaced,shortName=hgc,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Class",type="string",JSONPath=".spec.infrastructureClassName",description="The InfrastructureClass"
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Whether the infrastructure has been provisioned"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the infrastructure is there as it should be"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".status.conditions[?(@.type=='Ready')].lastTransitionTime",description="The time since Ready changed"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="The host of the control plane"
// +kubebuilder:printcolumn:name="Synced",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status",description="Whether the last call to the extension succeeded"
// +kubebuilder:printcolumn:name="Failure",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].message",description="Why the last call to the extension failed"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What the object waits for"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="External ID",type="string",priority=1,JSONPath=".spec.externalID",description="The name of the cluster outside"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired infrastructure.
	// +required
	Spec HookgateClusterSpec `json:"spec,omitzero"`

	// status is the observed infrastructure.
	// +optional
	Status HookgateClusterStatus `json:"status,omitzero"`
}

// HookgateClusterSpec is the desired infrastructure of a Cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || (has(self.externalID) && self.externalID == oldSelf.externalID)",message="externalID must not change: it names everything in the backend"
// +kubebuilder:validation:XValidation:rule="!has(self.identityRef) || !has(self.credentialsRef)",message="only one of identityRef and credentialsRef can be set: both name credentials"
type HookgateClusterSpec struct {
	// infrastructureClassName is the name of the InfrastructureClass. The Machines and MachinePools of the Cluster use
	// the same class. The name must not change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: the infrastructure belongs to the extension that made it"
	// +required
	InfrastructureClassName string `json:"infrastructureClassName,omitempty"`

	// parameters are values that are passed to the extension. The schema of the parameters is in status.schemas.cluster of
	// the InfrastructureClass.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// credentialsRef names a Secret in the namespace of the HookgateCluster. The data of the Secret is sent to the
	// extension with every call for the Cluster, its Machines and its MachinePools. Without credentialsRef, the Secret of
	// the InfrastructureClass is used, if there is one.
	// +optional
	CredentialsRef *SecretReference `json:"credentialsRef,omitempty"`

	// identityRef names the HookgateClusterIdentity that the extension uses. The credentials of the identity are sent
	// instead of those in the Secret of credentialsRef or of the InfrastructureClass.
	// +optional
	IdentityRef *IdentityReference `json:"identityRef,omitempty"`

	// controlPlaneEndpoint is the address of the control plane. It comes from the extension, unless a user or a control
	// plane provider has set it. The controller writes it once and never changes it; Cluster API copies it once.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitzero"`

	// externalID names everything in the backend that belongs to the Cluster. The controller sets it before the first call
	// to the extension. If the HookgateCluster has the annotation cluster.x-k8s.io/managed-by, the tool that manages the
	// HookgateCluster sets externalID instead. externalID must not change, and is kept when the object is moved to another
	// management cluster or restored from a backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// HookgateClusterStatus is the observed infrastructure of a Cluster.
type HookgateClusterStatus struct {
	// conditions holds the conditions Ready, Synced, ParametersValid, CredentialsMovable and Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API waits for when it sets up the Cluster.
	// +optional
	Initialization Initialization `json:"initialization,omitzero"`

	// failureDomains are the places that machines can be spread over.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +optional
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// outputs are values from the extension that the Machines of the Cluster need, such as the ID of a network. The
	// outputs are sent with the requests for Machines and MachinePools, have at most 16 KiB, and must not contain secrets.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Outputs *apiextensionsv1.JSON `json:"outputs,omitempty"`
}

// FailureDomain is a place that machines can be spread over. Its JSON is that of Cluster API, v1beta2; only its
// attributes are bounded here.
type FailureDomain struct {
	// name is the name of the failure domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name,omitempty"`

	// controlPlane says whether the failure domain is for machines of the control plane.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// attributes is further information from the extension about the failure domain.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// GetConditions returns the conditions of the HookgateCluster.
func (c *HookgateCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the HookgateCluster.
func (c *HookgateCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// HookgateClusterList is a list of HookgateClusters.
//
// +kubebuilder:object:root=true
type HookgateClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateCluster `json:"items"`
}
