// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The finalizers of the kinds that have something outside. Only an extension's answer GONE, or the annotation Abandon,
// removes them.
const (
	ClusterFinalizer     = "infrastructure.hookgate.dev/hookgatecluster"
	MachineFinalizer     = "infrastructure.hookgate.dev/hookgatemachine"
	MachinePoolFinalizer = "infrastructure.hookgate.dev/hookgatemachinepool"
)

// ClassFinalizer and IdentityFinalizer keep an InfrastructureClass and a HookgateClusterIdentity until no object uses
// them: without its class and its credentials, nothing that exists outside could be deleted.
const (
	ClassFinalizer    = "infrastructure.hookgate.dev/infrastructureclass"
	IdentityFinalizer = "infrastructure.hookgate.dev/hookgateclusteridentity"
)

// The annotations that the controllers read or write.
const (
	// AbandonAnnotation removes the finalizer of an object that is being deleted without another call to the extension.
	// Its value must be the externalID of the object. What exists outside stays there.
	AbandonAnnotation = "infrastructure.hookgate.dev/abandon"

	// AcceptEmptyAnnotation on a HookgateMachinePool acknowledges that all its instances are gone although it should have
	// some. Its value must be the externalID of the pool. Without it, an answer without instances is not used, because
	// Cluster API deletes the Nodes of the provider IDs that leave the list.
	AcceptEmptyAnnotation = "infrastructure.hookgate.dev/accept-empty"

	// RevisionAnnotation on a HookgateMachine of a pool is the revision of the pool that it was made from.
	RevisionAnnotation = "infrastructure.hookgate.dev/revision"

	// ClassAnnotation, ClusterExternalIDAnnotation, CredentialsAnnotation and IdentityAnnotation record the
	// InfrastructureClass of a HookgateMachine or HookgateMachinePool, the externalID of its HookgateCluster, and the
	// Secret or the HookgateClusterIdentity that this names, if it names one. They are written with the externalID, and
	// used once the Cluster or the HookgateCluster is gone: deletion has to reach the same extension, with the same
	// credentials.
	ClassAnnotation             = "infrastructure.hookgate.dev/class"
	ClusterExternalIDAnnotation = "infrastructure.hookgate.dev/cluster-external-id"
	CredentialsAnnotation       = "infrastructure.hookgate.dev/credentials"
	IdentityAnnotation          = "infrastructure.hookgate.dev/identity"

	// VersionAnnotation and FailureDomainAnnotation on a HookgateMachine of a pool are the Kubernetes version and the
	// failure domain that it is made with. Cluster API makes its Machine later, without them.
	VersionAnnotation       = "infrastructure.hookgate.dev/version"
	FailureDomainAnnotation = "infrastructure.hookgate.dev/failure-domain"

	// InstanceAnnotation on a HookgateMachine is the name of the instance of a pool that it stands for. The extension
	// makes and removes the instance with its hooks for pools.
	InstanceAnnotation = "infrastructure.hookgate.dev/instance"

	// InstancesAnnotation on a HookgateMachinePool with the instanceManagement Machines records what makes its instances:
	// InstancesOfMachines or InstancesOfGroup. It is written with the externalID, so that an extension which gains or
	// loses its hooks for pools does not change the pools that exist.
	InstancesAnnotation = "infrastructure.hookgate.dev/instances"
)

// The values of InstancesAnnotation.
const (
	// InstancesOfMachines means that the hooks for machines make the instances, one by one.
	InstancesOfMachines = "machines"
	// InstancesOfGroup means that the hooks for pools make the instances, together.
	InstancesOfGroup = "group"
)

// SecretReference names a Secret with credentials for the extension.
type SecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the Secret. An InfrastructureClass, which has no namespace, must set the field.
	// In a HookgateCluster, leave the field out, or set the field to the namespace of the HookgateCluster. A template must
	// leave the field out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// LocalSecretReference names a Secret with credentials in the namespace of the controllers.
type LocalSecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// IdentityReference names a HookgateClusterIdentity.
type IdentityReference struct {
	// name is the name of the HookgateClusterIdentity.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// Initialization holds what Cluster API waits for when it sets up an object.
//
// +kubebuilder:validation:MinProperties=1
type Initialization struct {
	// provisioned is true once the infrastructure has been provisioned. The field then stays true:
	// Cluster API reads the field once.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}
