// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The types of conditions.
const (
	// ReadyCondition says in which state the infrastructure was last seen. Cluster API mirrors it as InfrastructureReady.
	// A call that fails does not change it. For an InfrastructureClass, it says whether the class can be used.
	ReadyCondition = clusterv1.ReadyCondition
	// SyncedCondition says how the last call to the extension went. It is separate from Ready, so that health checks do
	// not replace running machines because an extension is down.
	SyncedCondition = "Synced"
	// ParametersValidCondition says whether the parameters match the schema that the extension announces.
	ParametersValidCondition = "ParametersValid"
	// CredentialsMovableCondition says whether clusterctl move takes along the Secret that credentialsRef of a
	// HookgateCluster or of a HookgateClusterIdentity names.
	CredentialsMovableCondition = "CredentialsMovable"
	// PausedCondition says whether the object or its Cluster is paused. The extension is not called meanwhile.
	PausedCondition = clusterv1.PausedCondition
)

// The reasons of the condition Ready.
const (
	// ReadyReason means that the infrastructure is there as it should be.
	ReadyReason = clusterv1.ReadyReason
	// ProvisioningReason means that the extension works on it.
	ProvisioningReason = "Provisioning"
	// DeletingReason means that the extension deletes it.
	DeletingReason = clusterv1.DeletingReason
	// FailedReason means that the extension reports a failure without a reason of those below.
	FailedReason = "Failed"
	// ScalingReason means that a pool has more or fewer instances than it should have.
	ScalingReason = "Scaling"
	// RollingOutReason means that instances of a pool are being replaced by those of a new revision.
	RollingOutReason = "RollingOut"

	// InvalidParametersReason means that parameters are not as the extension requires.
	InvalidParametersReason = "InvalidParameters"
	// QuotaExceededReason means that a quota has to be raised, or something else deleted.
	QuotaExceededReason = "QuotaExceeded"
	// InsufficientCapacityReason means that the backend has no room at present.
	InsufficientCapacityReason = "InsufficientCapacity"
	// CredentialsInvalidReason means that the backend refuses the credentials.
	CredentialsInvalidReason = "CredentialsInvalid"
	// InstanceGoneReason means that a machine which existed is gone. It is never made again: Cluster API replaces the
	// Machine if a health check asks for it.
	InstanceGoneReason = "InstanceGone"

	// WaitingForOwnerReason means that Cluster API has not set the owner yet.
	WaitingForOwnerReason = "WaitingForOwner"
	// WaitingForClusterInfrastructureReason means that the infrastructure of the Cluster is not provisioned yet.
	WaitingForClusterInfrastructureReason = clusterv1.WaitingForClusterInfrastructureReadyReason
	// WaitingForBootstrapDataReason means that the bootstrap data is not there yet.
	WaitingForBootstrapDataReason = clusterv1.WaitingForBootstrapDataReason
	// HeldByHookReason means that a handler of BeforeMachineCreate holds the machine, or that none could be asked. Nothing
	// was made for it.
	HeldByHookReason = "HeldByHook"
	// ReplicasManagedReason means that something else sets the size of a pool of which Hookgate makes each machine: the
	// pool keeps its size.
	ReplicasManagedReason = "ReplicasManaged"
	// ClassNotFoundReason means that the InfrastructureClass does not exist.
	ClassNotFoundReason = "ClassNotFound"
	// ClassNotReadyReason means that the InfrastructureClass, or its extension, cannot be used yet.
	ClassNotReadyReason = "ClassNotReady"
	// IdentityNotFoundReason means that the HookgateClusterIdentity does not exist.
	IdentityNotFoundReason = "IdentityNotFound"
	// NamespaceNotAllowedReason means that the InfrastructureClass, or the HookgateClusterIdentity, may not be used in
	// this namespace.
	NamespaceNotAllowedReason = "NamespaceNotAllowed"
	// CredentialsNotFoundReason means that the Secret with credentials does not exist, or must not be used from here.
	CredentialsNotFoundReason = "CredentialsNotFound"
)

// The reasons of the condition Synced.
const (
	// SyncedReason means that the last call was answered, and the answer has been recorded.
	SyncedReason = "Synced"
	// CallFailedReason means that the last call could not be completed.
	CallFailedReason = "CallFailed"
	// BadAnswerReason means that the extension answered something that must not be used.
	BadAnswerReason = "BadAnswer"
	// EndpointConflictReason means that the extension answered another endpoint than the one in use, which never changes.
	EndpointConflictReason = "EndpointConflict"
	// ProviderIDConflictReason means that the extension answered another provider ID than the recorded one.
	ProviderIDConflictReason = "ProviderIDConflict"
	// DuplicateProviderIDReason means that the extension answered the same provider ID for two things.
	DuplicateProviderIDReason = "DuplicateProviderID"
	// DuplicateExternalIDReason means that another object had the externalID first. The extension is never called about
	// the second object.
	DuplicateExternalIDReason = "DuplicateExternalID"
	// IncompleteListReason means that the number of instances in an answer is not the one that it states.
	IncompleteListReason = "IncompleteList"
	// EmptyListReason means that all instances of a pool vanished at once, which has to be acknowledged.
	EmptyListReason = "EmptyList"
	// MissingHandlerReason means that the extension has no handler for the hook.
	MissingHandlerReason = "MissingHandler"
)

// The reasons of the condition ParametersValid, beside InvalidParametersReason.
const (
	// ParametersValidReason means that the parameters match the schema.
	ParametersValidReason = "ParametersValid"
	// SchemaInvalidReason means that the extension announces a schema that cannot be used.
	SchemaInvalidReason = "SchemaInvalid"
	// SchemaUnknownReason means that the extension has not announced its schemas yet.
	SchemaUnknownReason = "SchemaUnknown"
)

// The reasons of the condition CredentialsMovable.
const (
	// MovableReason means that the Secret goes along.
	MovableReason = "Movable"
	// NotMovableReason means that the Secret stays behind.
	NotMovableReason = "NotMovable"
)

// The reasons of the condition Paused.
const (
	PausedReason    = clusterv1.PausedReason
	NotPausedReason = clusterv1.NotPausedReason
)
