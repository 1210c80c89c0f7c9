// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ParamsNotReadyReason is the reason of a condition Ready that is not true because the gateway does not know the
// objects that the params of the rule name, or may not read them. Calls of the rule fail meanwhile.
const ParamsNotReadyReason = "ParamsNotReady"

// HookRuleParam is something that the expressions of a rule read besides the request.
//
// +kubebuilder:validation:XValidation:rule="[has(self.self) && self.self, has(self.admitted) && self.admitted, has(self.object), has(self.objects)].filter(x, x).size() == 1",message="must have one of self, admitted, object and objects"
type HookRuleParam struct {
	// name is the name of the param: expressions read params.<name>.
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// self makes the param the object that the request is about, as it is now, with its status: the Cluster or, for
	// in-place hooks, the Machine or the MachineSet. Cluster API removes the status from the objects of lifecycle
	// requests. The API version of the param is clusterAPIVersion of the rule, or v1beta2 if the rule does not set
	// clusterAPIVersion.
	// +optional
	Self bool `json:"self,omitempty"` //nolint:kubeapilinter // false says nothing

	// admitted makes the param a list, ordered by name, of Clusters in the namespace of the request: the Cluster of the
	// request, and the Clusters that are past BeforeClusterCreate. The list shows the Clusters as they are now, without
	// their status. A Cluster is past BeforeClusterCreate if it has an infrastructureRef or a controlPlaneRef, or if the
	// rule has let it pass before. If calls for several Clusters come at the same time, each call sees the Clusters that
	// the rule let pass before this call, whichever replica of the gateway is called. So a quota is never exceeded. The
	// API version of the param is clusterAPIVersion of the rule, or v1beta2 if the rule does not set clusterAPIVersion.
	// +optional
	Admitted bool `json:"admitted,omitempty"` //nolint:kubeapilinter // false says nothing

	// object is one object. The param is null while the object does not exist.
	// +optional
	Object *HookRuleObject `json:"object,omitempty"`

	// objects are the objects of a kind with matching labels. The param is a list, ordered by namespace and name. The list
	// is empty while no object matches. At most 500 objects with 1 MiB of JSON in all are allowed.
	// +optional
	Objects *HookRuleObjects `json:"objects,omitempty"`
}

// HookRuleKind is a kind of objects that rules may read. Secrets cannot be read.
type HookRuleKind struct {
	// apiVersion is the group and version of the kind, such as v1 or cluster.x-k8s.io/v1beta2.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the name of the kind, such as ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind,omitempty"`
}

// HookRuleObject names one object.
type HookRuleObject struct {
	HookRuleKind `json:",inline"`

	// namespace is the namespace of the object. Objects of cluster-scoped kinds have none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// HookRuleObjects selects objects of one kind.
type HookRuleObjects struct {
	HookRuleKind `json:",inline"`

	// namespace is the namespace of the objects. Without it, objects of all namespaces are selected.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// selector selects objects by their labels. Without it, all objects are selected.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
