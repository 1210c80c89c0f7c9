// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// HookJob is a handler that has no server: the gateway answers its hook with a Job, which runs a container once.
// While the Job runs, the caller waits. Callers see one handler with the registered name job.<name of the HookJob>.
//
// Whoever may write HookJobs can run containers in the namespace of the Jobs, and reach workload clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hookjobs,scope=Cluster,shortName=hjob,categories={cluster-api,hookgate}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Hook",type="string",JSONPath=".spec.hook",description="The hook that the Job answers"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the HookJob is in effect"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Namespace",type="string",priority=1,JSONPath=".spec.namespace",description="The namespace of the Jobs"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What keeps the HookJob from being in effect"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1123 label of at most 63 characters: it is the name of a handler"
type HookJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object. Its name is a DNS-1123 label that no ExtensionConfig, HandlerChain and
	// HookRule has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says when a Job runs, and which Job.
	// +required
	Spec HookJobSpec `json:"spec,omitzero"`

	// status is the observed state of the HookJob.
	// +optional
	Status HookJobStatus `json:"status,omitzero"`
}

// WorkloadCluster says how a Job reaches the workload cluster.
//
// +kubebuilder:validation:Enum=None;Kubeconfig
type WorkloadCluster string

// The ways to reach the workload cluster.
const (
	// WorkloadClusterNone means that the Job does not reach the workload cluster.
	WorkloadClusterNone WorkloadCluster = "None"
	// WorkloadClusterKubeconfig mounts a copy of the Cluster's kubeconfig.
	WorkloadClusterKubeconfig WorkloadCluster = "Kubeconfig"
)

// OnJobFailure says what a Job that has failed means for the caller.
//
// +kubebuilder:validation:Enum=Hold;Fail
type OnJobFailure string

// What a Job that has failed means.
const (
	// OnJobFailureHold makes the caller wait until the Job is deleted; the next call makes a new Job.
	OnJobFailureHold OnJobFailure = "Hold"
	// OnJobFailureFail makes the call fail.
	OnJobFailureFail OnJobFailure = "Fail"
)

// HookJobSpec says when a Job runs, and which Job.
type HookJobSpec struct {
	// hook is the name of the hook: UpdateMachine, RemediateMachine, or a lifecycle hook, such as BeforeClusterUpgrade or
	// BeforeMachineTerminate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Hook string `json:"hook,omitempty"`

	// namespaceSelector restricts the HookJob to requests about objects in namespaces with matching labels, as the
	// namespaceSelector of an ExtensionConfig does.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// objectSelector restricts the HookJob to requests about objects with matching labels: the Cluster or Machine of the
	// request.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// matchConditions restricts the HookJob to requests for which all conditions are true. They are evaluated after
	// namespaceSelector and objectSelector. If the evaluation of a condition fails, the call of the HookJob fails.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`

	// clusterAPIVersion is the version of the API group cluster.x-k8s.io, v1beta1 or v1beta2, in which the container and
	// the expressions see the objects of requests. Without it, these objects are as the caller sent them.
	// +optional
	ClusterAPIVersion ClusterAPIVersion `json:"clusterAPIVersion,omitempty"`

	// once is an expression in CEL (https://cel.dev) whose value is a text: one Job runs for each value. Its variable is
	// request, the JSON of the request. The default is the UID of the Cluster, with the version of Kubernetes that the
	// request is about, if it has one. For UpdateMachine, the default is the UID of the Machine, with the desired state.
	// For the other hooks of Machines, it is the UID of the Machine, with the remediation and the attempt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Once string `json:"once,omitempty"`

	// workloadCluster says how the Job reaches the workload cluster. Kubeconfig mounts a copy of the kubeconfig that
	// Cluster API has made for the Cluster. The copy is deleted with the Job. The default is None.
	// +optional
	WorkloadCluster WorkloadCluster `json:"workloadCluster,omitempty"`

	// namespace is the namespace of the Jobs. It is one of the namespaces that the gateway was started with, or Cluster,
	// which means the namespace of the Cluster. The default is the first namespace that the gateway was started with.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// retryAfterSeconds is how soon the caller should call again while the Job runs. The default is 30. The field is for
	// hooks whose callers wait.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`

	// deadline is how long the Job may take, with all its attempts, such as 1h. After that time, the Job has failed. The
	// default is 1h, and the maximum is 168h.
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// onFailure says what a Job that has failed means. Hold, the default, makes the caller wait until the Job is deleted;
	// the next call makes a new Job. Fail makes the call fail. The field is for hooks whose callers wait.
	// +optional
	OnFailure OnJobFailure `json:"onFailure,omitempty"`

	// jobTemplate is the JobTemplateSpec of batch/v1 that Jobs are made of. It must state the restartPolicy. Its Pods
	// must meet the level restricted of the Pod Security Standards, unless the gateway was started with another
	// level. Fields of security contexts that the template omits are filled in. The container has the files of the
	// request in /hookgate.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	JobTemplate runtime.RawExtension `json:"jobTemplate,omitzero"`
}

// HookJobStatus is the observed state of a HookJob.
type HookJobStatus struct {
	// conditions holds the condition Ready, which says whether the HookJob is in effect, and if not, why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HookJobList is a list of HookJobs.
//
// +kubebuilder:object:root=true
type HookJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []HookJob `json:"items"`
}
