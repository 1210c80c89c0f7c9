// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRecord is what a HookRule or a HookJob knows about one Cluster, and could not find out again. Hookgate writes
// it. It is in the namespace of the Cluster, which owns it: it is deleted with the Cluster, and clusterctl moves it
// along.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterrecords,scope=Namespaced,shortName=clrec,categories={hookgate}
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io="
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="The Cluster"
// +kubebuilder:printcolumn:name="Rule",type="string",JSONPath=".spec.place.rule",description="The HookRule that the Cluster has a place of"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".spec.place.since",description="When it took the place"
// +kubebuilder:printcolumn:name="Admitted by",type="string",JSONPath=".spec.admission.rule",description="The HookRule that has let the Cluster pass"
// +kubebuilder:printcolumn:name="Job",type="string",JSONPath=".spec.job.hookJob",description="The HookJob that has made Jobs for the Cluster"
// +kubebuilder:printcolumn:name="Runs",type="string",JSONPath=".metadata.annotations.clusterctl\\.cluster\\.x-k8s\\.io/block-move",description="A Job that has not ended, for which clusterctl move waits"
// +kubebuilder:validation:XValidation:rule="[has(self.spec.place), has(self.spec.admission), has(self.spec.job)].filter(x, x).size() == 1",message="spec must have one of place, admission and job"
type ClusterRecord struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is known of the Cluster.
	// +required
	Spec ClusterRecordSpec `json:"spec,omitzero"`
}

// ClusterRecordSpec is what a HookRule or a HookJob knows about one Cluster.
type ClusterRecordSpec struct {
	// clusterName is the name of the Cluster, in the namespace of the record.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	ClusterName string `json:"clusterName,omitempty"`

	// place is a place of a HookRule with concurrency: the Cluster is past its hook.
	// +optional
	Place *ClusterPlace `json:"place,omitempty"`

	// admission is that a HookRule with a param of admitted Clusters has let the Cluster pass, which does not show it yet.
	// +optional
	Admission *ClusterAdmission `json:"admission,omitempty"`

	// job is what a HookJob has done for the Cluster.
	// +optional
	Job *ClusterJobs `json:"job,omitempty"`
}

// ClusterPlace is a place of a HookRule with concurrency.
type ClusterPlace struct {
	// rule is the name of the HookRule.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Rule string `json:"rule,omitempty"`

	// per is the value of per for the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Per string `json:"per,omitempty"`

	// topologyVersion is the version of Kubernetes that the Cluster was to have when it took the place, for hooks of
	// upgrades: with another one, the upgrade is over or has been given up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TopologyVersion string `json:"topologyVersion,omitempty"`

	// since is when the Cluster took the place. Without it, a gateway is about to give the place out, if no other has been
	// faster.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// ClusterAdmission is that a HookRule with a param of admitted Clusters has let a Cluster pass.
type ClusterAdmission struct {
	// rule is the name of the HookRule.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Rule string `json:"rule,omitempty"`

	// since is when the rule has let the Cluster pass. Without it, a gateway is about to do so, if no other has been
	// faster.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// ClusterJobs is what a HookJob has done for a Cluster.
type ClusterJobs struct {
	// hookJob is the name of the HookJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	HookJob string `json:"hookJob,omitempty"`

	// succeeded are the newest Jobs that have succeeded, by digests of once in which names stand for the UIDs that a move
	// changes.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Succeeded []string `json:"succeeded,omitempty"`
}

// ClusterRecordList is a list of ClusterRecords.
//
// +kubebuilder:object:root=true
type ClusterRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []ClusterRecord `json:"items"`
}
