// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExtensionRolloutRecord is what an ExtensionRollout knows about one Cluster. Hookgate writes it. While the record says
// that a Cluster has moved, the candidate answers for the Cluster, whatever else changes. Deleting the record moves the
// Cluster back. The record is in the namespace of the Cluster, and the Cluster owns it, so that clusterctl moves it
// along. A record about no Cluster is in the namespace of the gateway.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensionrolloutrecords,scope=Namespaced,shortName=extrollrec,categories={hookgate}
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io="
// +kubebuilder:printcolumn:name="Rollout",type="string",JSONPath=".spec.rollout",description="The ExtensionRollout"
// +kubebuilder:printcolumn:name="Namespace",type="string",JSONPath=".spec.cluster.namespace",description="The namespace of the Cluster"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.cluster.name",description="The name of the Cluster"
// +kubebuilder:printcolumn:name="Candidate",type="string",JSONPath=".spec.candidate",description="The ExtensionConfig that was compared, or to which the Cluster has moved"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".spec.state",description="What is known of the Cluster"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".spec.since",description="Since when the Cluster has this state"
type ExtensionRolloutRecord struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is known of the Cluster.
	// +required
	Spec ExtensionRolloutRecordSpec `json:"spec,omitzero"`
}

// RolloutState is what is known of a Cluster.
//
// +kubebuilder:validation:Enum=Equal;Different;Moved;Aborted
type RolloutState string

// What is known of a Cluster.
const (
	// RolloutStateEqual means that both versions have answered alike.
	RolloutStateEqual RolloutState = "Equal"
	// RolloutStateDifferent means that the versions have answered differently, or that their answers, such as two
	// Failures, prove nothing.
	RolloutStateDifferent RolloutState = "Different"
	// RolloutStateMoved means that the candidate answers for the Cluster.
	RolloutStateMoved RolloutState = "Moved"
	// RolloutStateAborted is the state of a record without a Cluster, and means that no more Clusters move.
	RolloutStateAborted RolloutState = "Aborted"
)

// ExtensionRolloutRecordSpec is what an ExtensionRollout knows about one Cluster.
type ExtensionRolloutRecordSpec struct {
	// rollout is the name of the ExtensionRollout.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Rollout string `json:"rollout,omitempty"`

	// cluster is the Cluster. It is absent in a record about no Cluster, such as one about variables.
	// +optional
	Cluster *RolloutCluster `json:"cluster,omitempty"`

	// candidate is the name of the ExtensionConfig that was compared, or to which the Cluster has moved.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Candidate string `json:"candidate,omitempty"`

	// state is what is known of the Cluster: Equal, Different or Moved. Aborted is about all Clusters.
	// +required
	State RolloutState `json:"state,omitempty"`

	// since is when the state began.
	// +optional
	Since metav1.Time `json:"since,omitzero"`

	// message says why the record has this state.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// differences are the first values that differ, or differed when the Cluster moved.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Differences []RolloutDifference `json:"differences,omitempty"`

	// omittedDifferences is how many more values differ.
	// +kubebuilder:validation:Minimum=1
	// +optional
	OmittedDifferences *int32 `json:"omittedDifferences,omitempty"`
}

// RolloutCluster is a Cluster.
type RolloutCluster struct {
	// namespace is the namespace of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// RolloutDifference is a value that differs.
type RolloutDifference struct {
	// handler is the name of the handler that answered.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Handler string `json:"handler,omitempty"`

	// question is the hook, and a digest of the settings and the objects of the call. Old records lack it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Question string `json:"question,omitempty"`

	// object is the object that the patches of the answers change. It is absent for a value of the answer itself.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Object string `json:"object,omitempty"`

	// path is the JSON pointer of the value. It is absent for the whole answer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Path string `json:"path,omitempty"`

	// stable is the value of the stable version as JSON, cut if it is long, and absent if there is none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Stable string `json:"stable,omitempty"`

	// candidate is the value of the candidate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// machines says what the difference may do to Machines.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Machines string `json:"machines,omitempty"`
}

// ExtensionRolloutRecordList is a list of ExtensionRolloutRecords.
//
// +kubebuilder:object:root=true
type ExtensionRolloutRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ExtensionRolloutRecord `json:"items"`
}
