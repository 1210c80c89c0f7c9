// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HookgateMachinePool is the infrastructure of a MachinePool, made by the extension of the Cluster's
// InfrastructureClass. The number of instances comes from the MachinePool.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookgatemachinepools,scope=Namespaced,shortName=hgmp,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="The number of instances that exist"
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Whether the pool has been provisioned"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the instances are there as they should be"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".status.conditions[?(@.type=='Ready')].lastTransitionTime",description="The time since Ready changed"
// +kubebuilder:printcolumn:name="Synced",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status",description="Whether the last call to the extension succeeded"
// +kubebuilder:printcolumn:name="Failure",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].message",description="Why the last call to the extension failed"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What the object waits for"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="External ID",type="string",priority=1,JSONPath=".spec.externalID",description="The name of the pool outside"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type HookgateMachinePool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired pool. It may be empty.
	// +required
	Spec HookgateMachinePoolSpec `json:"spec"`

	// status is the observed pool.
	// +optional
	Status HookgateMachinePoolStatus `json:"status,omitzero"`
}

// InstanceManagement decides how Cluster API sees the instances of a pool.
//
// +kubebuilder:validation:Enum=Machines;Group
type InstanceManagement string

// The ways to manage the instances of a pool.
const (
	InstanceManagementMachines InstanceManagement = "Machines"
	InstanceManagementGroup    InstanceManagement = "Group"
)

// HookgateMachinePoolSpec is the desired infrastructure of a MachinePool.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || (has(self.externalID) && self.externalID == oldSelf.externalID)",message="externalID must not change: it names everything in the backend"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID must not change: it names the pool that was made"
// +kubebuilder:validation:XValidation:rule="(has(self.instanceManagement) ? self.instanceManagement : 'Machines') == (has(oldSelf.instanceManagement) ? oldSelf.instanceManagement : 'Machines')",message="instanceManagement must not change: Machines would be left behind, or instances would have no Machines; make another MachinePool"
type HookgateMachinePoolSpec struct {
	// parameters are values that are passed to the extension. The schema of the parameters is in
	// status.schemas.machinePool of the Cluster's InfrastructureClass, or in status.schemas.machine if the extension has
	// no hooks for pools.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// instanceManagement decides how Cluster API sees the instances, and must not change. With Machines, the default,
	// each instance is a Machine: it is drained before it is deleted, and health checks can replace it. With Group, the
	// backend decides which instances to delete. If the extension has hooks for pools, these hooks create the instances,
	// whether instanceManagement is Machines or Group. Without such hooks, Group cannot be used, and a pool with
	// Machines consists of machines that are created one by one.
	// +optional
	InstanceManagement InstanceManagement `json:"instanceManagement,omitempty"`

	// providerID names the pool in the backend, for information. The controller writes it once, from the extension's
	// answer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// providerIDList are the provider IDs of the instances. The controller writes the list. If a
	// provider ID is removed from the list, Cluster API deletes the Node with this provider ID.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// externalID names everything in the backend that belongs to the pool. The controller sets it before the first
	// call to the extension. externalID must not change, and is kept when the object is moved to another management
	// cluster or restored from a backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +optional
	ExternalID string `json:"externalID,omitempty"`
}

// HookgateMachinePoolStatus is the observed infrastructure of a MachinePool. It has no failureReason and no
// failureMessage: Cluster API panics when a pool has them.
type HookgateMachinePoolStatus struct {
	// conditions holds the conditions Ready, Synced, ParametersValid and Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API waits for, according to the contract. Cluster API v1.14 reads status.ready
	// instead.
	// +optional
	Initialization Initialization `json:"initialization,omitzero"`

	// ready is true once the pool has been provisioned. The field then stays true, because Cluster API reads
	// providerIDList only while the field is true.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// replicas is the number of instances that exist. The controller writes the field even if the number is zero,
	// because Cluster API keeps the previous number if the field is missing.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// infrastructureMachineKind is HookgateMachine if each instance is a Machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`

	// capacity is the resources of an instance, as the extension announces them. The cluster autoscaler reads the field
	// to scale from zero.
	// +kubebuilder:validation:XValidation:rule="self.size() <= 64",message="must have at most 64 resources"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is what the Node of an instance reports about itself.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitzero"`

	// instances holds the instances of the pool, for information. If there are more than 1,000, the list has the first
	// 1,000 by name.
	// +listType=map
	// +listMapKey=instanceName
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Instances []MachinePoolInstance `json:"instances,omitempty"`
}

// MachinePoolInstance is an instance of a pool.
type MachinePoolInstance struct {
	// instanceName is the name of the instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	InstanceName string `json:"instanceName,omitempty"`

	// providerID is the provider ID that the instance and its Node share.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// ready says whether the instance runs.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// version is the Kubernetes version that the instance was made for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// revision is the revision of the pool that the instance was made from.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Revision string `json:"revision,omitempty"`

	// failureDomain is the failure domain that the instance is in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`

	// addresses are the addresses of the instance.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`
}

// OfMachines reports whether a pool of a class, which may be nil, is made of machines, one by one: its instances are to
// be Machines, and the extension has no hooks for pools, or had none when the pool was made.
func (p *HookgateMachinePool) OfMachines(c *InfrastructureClass) bool {
	recorded, ok := p.Annotations[InstancesAnnotation]
	switch {
	case p.Spec.InstanceManagement == InstanceManagementGroup:
		return false
	case ok:
		return recorded != InstancesOfGroup
	case p.Spec.ExternalID != "": // made by a version that did not record it, with machines alone
		return true
	}
	return c == nil || c.Status.Handlers.ReconcileMachinePool == ""
}

// GetConditions returns the conditions of the HookgateMachinePool.
func (p *HookgateMachinePool) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions of the HookgateMachinePool.
func (p *HookgateMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// HookgateMachinePoolList is a list of HookgateMachinePools.
//
// +kubebuilder:object:root=true
type HookgateMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookgateMachinePool `json:"items"`
}
