// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRecord is what Hookgate knows about one Cluster, and could not determine again. Hookgate writes it. The record
// is in the namespace of the Cluster, and the Cluster owns it: the record is deleted with the Cluster, and clusterctl
// moves it along. A record for AfterClusterDelete outlives the Cluster: it is in the namespace of the gateway, and this
// namespace owns it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterrecords,scope=Namespaced,shortName=clrec,categories={hookgate}
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io="
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="The Cluster"
// +kubebuilder:printcolumn:name="Rule",type="string",JSONPath=".spec.place.rule",description="The HookRule in which the Cluster has a place"
// +kubebuilder:printcolumn:name="Since",type="date",JSONPath=".spec.place.since",description="When the Cluster took the place"
// +kubebuilder:printcolumn:name="Admitted by",type="string",JSONPath=".spec.admission.rule",description="The HookRule that has let the Cluster pass"
// +kubebuilder:printcolumn:name="Job",type="string",JSONPath=".spec.job.hookJob",description="The HookJob that has made Jobs for the Cluster"
// +kubebuilder:printcolumn:name="Runs",type="string",JSONPath=".metadata.annotations.clusterctl\\.cluster\\.x-k8s\\.io/block-move",description="A Job that has not ended, for which clusterctl move waits"
// +kubebuilder:printcolumn:name="Gone",type="date",JSONPath=".spec.afterDelete.goneSince",description="Since when the Cluster is gone, and handlers of AfterClusterDelete are called"
// +kubebuilder:validation:XValidation:rule="[has(self.spec.place), has(self.spec.admission), has(self.spec.job), has(self.spec.afterDelete)].exists_one(x, x)",message="spec must have one of place, admission, job and afterDelete"
type ClusterRecord struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is known of the Cluster.
	// +required
	Spec ClusterRecordSpec `json:"spec,omitzero"`
}

// ClusterRecordSpec is what Hookgate knows about one Cluster.
type ClusterRecordSpec struct {
	// clusterName is the name of the Cluster. Unless afterDelete says otherwise, the Cluster is in the namespace of the
	// record.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	ClusterName string `json:"clusterName,omitempty"`

	// place is a place of a HookRule with concurrency: the Cluster is past the hook of the rule.
	// +optional
	Place *ClusterPlace `json:"place,omitempty"`

	// admission says that a HookRule with a param of admitted Clusters has let the Cluster pass, although the Cluster
	// does not show it yet.
	// +optional
	Admission *ClusterAdmission `json:"admission,omitempty"`

	// job is what a HookJob has done for the Cluster.
	// +optional
	Job *ClusterJobs `json:"job,omitempty"`

	// afterDelete is what handlers of AfterClusterDelete are told once the Cluster is gone.
	// +optional
	AfterDelete *ClusterAfterDelete `json:"afterDelete,omitempty"`
}

// ClusterAfterDelete is what handlers of AfterClusterDelete are told once a Cluster is gone. If the field namespace is
// set, the record is in the namespace of the gateway. Otherwise, the record is in the namespace of the Cluster, says
// only that there is another record, and makes clusterctl wait until the gateway knows that the Cluster may move.
type ClusterAfterDelete struct {
	// uid is the UID of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	UID string `json:"uid,omitempty"`

	// namespace is the namespace of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// created is when the Cluster was created.
	// +optional
	Created metav1.Time `json:"created,omitzero"`

	// labels are the labels of the Cluster: the first 100 by name.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// namespaceLabels are the labels of the Cluster's namespace: the first 100 by name.
	// +kubebuilder:validation:MaxProperties=100
	// +optional
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`

	// class is the name of the Cluster's ClusterClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Class string `json:"class,omitempty"`

	// classNamespace is the namespace of the ClusterClass, if the Cluster names a namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClassNamespace string `json:"classNamespace,omitempty"`

	// version is the version of Kubernetes in the Cluster's topology.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// mayMove is true while the Cluster has the annotation of a move, or is paused: clusterctl pauses a Cluster before it
	// moves it. If the Cluster disappears in that time, and no gateway watches, the Cluster counts as moved.
	// +optional
	MayMove *bool `json:"mayMove,omitempty"`

	// goneSince is when the gateway found that the Cluster is gone. Handlers are called from then on.
	// +optional
	GoneSince metav1.Time `json:"goneSince,omitzero"`
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

	// topologyVersion is spec.topology.version of the Cluster when it took the place, for hooks of upgrades. If the
	// version changes, the upgrade is over or has been given up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TopologyVersion string `json:"topologyVersion,omitempty"`

	// since is when the Cluster took the place. If it is not set, a gateway is about to give the Cluster the place, unless
	// another gateway has been faster.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// ClusterAdmission says that a HookRule with a param of admitted Clusters has let a Cluster pass.
type ClusterAdmission struct {
	// rule is the name of the HookRule.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Rule string `json:"rule,omitempty"`

	// since is when the rule let the Cluster pass. If it is not set, a gateway is about to let the Cluster pass, unless
	// another gateway has been faster.
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

	// succeeded are the newest Jobs that have succeeded. Each entry is a digest of the hook and the value of once, with
	// names in place of the UIDs that a move changes.
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
