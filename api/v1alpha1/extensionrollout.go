// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExtensionRollout moves Clusters from one version of an extension to another, one by one. Callers see a single
// extension with the name of the ExtensionRollout. For each Cluster, one of two ExtensionConfigs answers; neither is
// offered or called on its own.
//
// A Cluster moves to the candidate when an ExtensionRolloutRecord says so, and moves back only when that record is
// deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionrollouts,scope=Cluster,shortName=extroll,categories={cluster-api,hookgate}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Stable",type="string",JSONPath=".spec.stable",description="The ExtensionConfig that answers for Clusters that have not moved"
// +kubebuilder:printcolumn:name="Candidate",type="string",JSONPath=".spec.candidate",description="The ExtensionConfig that answers for Clusters that have moved"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the ExtensionRollout is in effect"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What keeps the ExtensionRollout from being in effect"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1123 label of at most 63 characters: it is a part of the names of handlers"
type ExtensionRollout struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object. Its name is a DNS-1123 label. An ExtensionConfig with this name is
	// called only if spec.stable or spec.candidate names it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which ExtensionConfigs answer, and which Clusters may move.
	// +required
	Spec ExtensionRolloutSpec `json:"spec,omitzero"`

	// status is the observed state of the ExtensionRollout.
	// +optional
	Status ExtensionRolloutStatus `json:"status,omitzero"`
}

// NewClusters says which version of an extension answers for Clusters that are created.
//
// +kubebuilder:validation:Enum=Stable;Candidate
type NewClusters string

// The versions for new Clusters.
const (
	// NewClustersStable is the stable version.
	NewClustersStable NewClusters = "Stable"
	// NewClustersCandidate is the candidate.
	NewClustersCandidate NewClusters = "Candidate"
)

// OnDifference says what happens to a Cluster for which the versions answer differently.
//
// +kubebuilder:validation:Enum=Hold;Move
type OnDifference string

// What happens to a Cluster for which the versions answer differently.
const (
	// OnDifferenceHold lets the Cluster stay until it is approved.
	OnDifferenceHold OnDifference = "Hold"
	// OnDifferenceMove lets the Cluster move.
	OnDifferenceMove OnDifference = "Move"
)

// ExtensionRolloutSpec says which ExtensionConfigs answer, and which Clusters may move.
//
// +kubebuilder:validation:XValidation:rule="!has(self.candidate) || self.candidate != self.stable",message="candidate must be another ExtensionConfig than stable"
type ExtensionRolloutSpec struct {
	// stable is the name of the ExtensionConfig that answers for Clusters that have not moved, and for calls about no
	// Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Stable string `json:"stable,omitempty"`

	// candidate is the name of the ExtensionConfig that answers for Clusters that have moved. Without it, no Cluster
	// moves.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// candidateFor says which Clusters may move. Without it, only approved Clusters may move.
	// +optional
	CandidateFor *RolloutClusters `json:"candidateFor,omitempty"`

	// newClusters says which version answers for Clusters that are created: Stable, the default, or Candidate.
	// +optional
	NewClusters NewClusters `json:"newClusters,omitempty"`

	// compare also calls the candidate for Clusters that may not move. The gateway only compares these answers of the
	// candidate, to show for which Clusters the versions differ. For Clusters that may move, the versions are always
	// compared first.
	// +optional
	Compare bool `json:"compare,omitempty"`

	// notCompared are the names, without the name of an ExtensionConfig, of handlers whose answers are not compared, such
	// as a handler that writes Secrets. For these handlers, the candidate is not called in addition to stable. A Cluster
	// whose calls reach such a handler moves only when it is approved, even with onDifference: Move.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	NotCompared []string `json:"notCompared,omitempty"`

	// onDifference says what happens to a Cluster that may move and for which the versions answer differently. With Hold,
	// the default, the Cluster moves when it is approved. With Move, it moves without approval.
	// +optional
	OnDifference OnDifference `json:"onDifference,omitempty"`

	// approved are Clusters, as namespace/name, that may move although the versions answer differently for them. The
	// annotation hookgate.dev/approve-rollout of a Cluster, with the name of the candidate, does the same. "*" approves
	// all Clusters. "/" approves calls about no Cluster, such as those of DiscoverVariables.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	// +optional
	Approved []string `json:"approved,omitempty"`

	// abort says when no more Clusters move.
	// +optional
	Abort *RolloutAbort `json:"abort,omitempty"`

	// paused keeps Clusters from moving. Clusters that have moved stay with the candidate.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ApproveRolloutAnnotation is the annotation of a Cluster that approves its move to the ExtensionConfig that it names.
const ApproveRolloutAnnotation = "hookgate.dev/approve-rollout"

// RolloutClusters says which Clusters may move: the Clusters that match all fields.
type RolloutClusters struct {
	// percent is the percentage of Clusters that may move. A hash of namespace and name chooses the Clusters. The default
	// is 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int32 `json:"percent,omitempty"`

	// clusterSelector selects Clusters by their labels. The default is all Clusters.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// RolloutAbort says when no more Clusters move.
type RolloutAbort struct {
	// errorPercent is how many of the last 100 calls to the candidate, comparisons included, may fail. If more calls fail,
	// no Cluster moves until the ExtensionRollout is resumed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +required
	ErrorPercent *int32 `json:"errorPercent,omitempty"`
}

// MemberMissingReason is the reason of the condition Ready of an ExtensionRollout if the handlers of one of its
// ExtensionConfigs are not known.
const MemberMissingReason = "MemberMissing"

// AbortedReason is the reason of the condition Ready of an ExtensionRollout, which is true, if no more Clusters move
// because too many calls to the candidate have failed.
const AbortedReason = "Aborted"

// RecordsMissingReason is the reason of the condition Ready of an ExtensionRollout if its records have not been read.
const RecordsMissingReason = "RecordsMissing"

// ExtensionRolloutStatus is the observed state of an ExtensionRollout.
type ExtensionRolloutStatus struct {
	// conditions holds the condition Ready, which says whether the ExtensionRollout is in effect, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ExtensionRolloutList is a list of ExtensionRollouts.
//
// +kubebuilder:object:root=true
type ExtensionRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ExtensionRollout `json:"items"`
}
