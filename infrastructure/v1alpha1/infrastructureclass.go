// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InfrastructureClass describes infrastructure that Clusters can use. The class names the extension that provides the
// infrastructure, selects the namespaces that may use the class, and sets default parameters and default credentials
// for the extension. Like a StorageClass or a GatewayClass, an InfrastructureClass belongs to the administrators of a
// management cluster, and is not moved with Clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=infrastructureclasses,scope=Cluster,shortName=infraclass,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Extension",type="string",JSONPath=".spec.extensionRef.name",description="The ExtensionConfig of the extension"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the class can be used"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Synced",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status",description="Whether the last discovery succeeded"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether the object is paused"
// +kubebuilder:printcolumn:name="Provider IDs",type="string",priority=1,JSONPath=".status.providerIDPrefix",description="The prefix of the provider IDs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation"
type InfrastructureClass struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the extension of the class and how it is used.
	// +required
	Spec InfrastructureClassSpec `json:"spec,omitzero"`

	// status is what the extension announces.
	// +optional
	Status InfrastructureClassStatus `json:"status,omitzero"`
}

// InfrastructureClassSpec is the extension of a class and how it is used.
//
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsRef) || has(self.credentialsRef.namespace)",message="credentialsRef.namespace must be set: a class has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsRef) || has(self.allowedNamespaces)",message="allowedNamespaces must be set if credentialsRef is set: every namespace that may use the class acts with these credentials; selector: {} allows all namespaces"
type InfrastructureClassSpec struct {
	// extensionRef names the ExtensionConfig of the extension.
	// +required
	ExtensionRef ExtensionReference `json:"extensionRef,omitzero"`

	// handlers chooses a handler of the extension for each hook. A hook that is left out uses the only handler that the
	// extension has for it.
	// +optional
	Handlers Handlers `json:"handlers,omitzero"`

	// allowedNamespaces restricts the namespaces whose HookgateClusters may use the class. If it is not set, the
	// class is for all namespaces.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// credentialsRef names the Secret whose data is sent to the extension with every call, unless a HookgateCluster names
	// a Secret of its own. If credentialsRef is set, allowedNamespaces must also be set.
	// +optional
	CredentialsRef *SecretReference `json:"credentialsRef,omitempty"`

	// defaultParameters are parameters for objects of the class that do not set these parameters themselves. The
	// defaults go into the requests to the extension, and are never written into objects.
	// +optional
	DefaultParameters DefaultParameters `json:"defaultParameters,omitzero"`
}

// ExtensionReference names an extension.
type ExtensionReference struct {
	// name is the name of the ExtensionConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label"
	// +required
	Name string `json:"name,omitempty"`
}

// HandlerName is the name of a handler as the extension's discovery returns it, without the name of the
// ExtensionConfig.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1123 label; leave out the name of the ExtensionConfig"
type HandlerName string

// Handlers are the handlers of an extension for the hooks of infrastructure.
//
// +kubebuilder:validation:MinProperties=1
type Handlers struct {
	// reconcileCluster is the handler of the hook ReconcileCluster.
	// +optional
	ReconcileCluster HandlerName `json:"reconcileCluster,omitempty"`

	// deleteCluster is the handler of the hook DeleteCluster.
	// +optional
	DeleteCluster HandlerName `json:"deleteCluster,omitempty"`

	// reconcileMachine is the handler of the hook ReconcileMachine.
	// +optional
	ReconcileMachine HandlerName `json:"reconcileMachine,omitempty"`

	// deleteMachine is the handler of the hook DeleteMachine.
	// +optional
	DeleteMachine HandlerName `json:"deleteMachine,omitempty"`

	// reconcileMachinePool is the handler of the hook ReconcileMachinePool. Without this handler, the controller calls
	// ReconcileMachine for each machine of a pool.
	// +optional
	ReconcileMachinePool HandlerName `json:"reconcileMachinePool,omitempty"`

	// deleteMachinePool is the handler of the hook DeleteMachinePool.
	// +optional
	DeleteMachinePool HandlerName `json:"deleteMachinePool,omitempty"`
}

// AllowedNamespaces selects namespaces. A namespace is allowed if either field selects it.
//
// +kubebuilder:validation:MinProperties=1
type AllowedNamespaces struct {
	// names are the names of the allowed namespaces.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Names []string `json:"names,omitempty"`

	// selector selects namespaces by their labels. An empty selector selects every namespace.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// DefaultParameters are default parameters for each kind. An object's own parameters are merged into them as a JSON
// merge patch (RFC 7386): objects are merged member by member, and any other value replaces the default.
//
// +kubebuilder:validation:MinProperties=1
type DefaultParameters struct {
	// cluster are the default parameters of HookgateClusters.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Cluster *apiextensionsv1.JSON `json:"cluster,omitempty"`

	// machine are the default parameters of HookgateMachines.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Machine *apiextensionsv1.JSON `json:"machine,omitempty"`

	// machinePool are the default parameters of HookgateMachinePools.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	MachinePool *apiextensionsv1.JSON `json:"machinePool,omitempty"`
}

// InfrastructureClassStatus is what the extension of a class announces.
type InfrastructureClassStatus struct {
	// conditions holds the conditions Ready (whether the class can be used), Synced (how the last discovery went) and
	// Paused.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// handlers are the handlers that are called. A hook that is left out has no handler.
	// +optional
	Handlers Handlers `json:"handlers,omitzero"`

	// providerIDPrefix is the prefix of all provider IDs that the extension makes, such as acme://. The prefix is set
	// when a discovery has succeeded.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ProviderIDPrefix string `json:"providerIDPrefix,omitempty"`

	// schemas are the schemas of the parameters.
	// +optional
	Schemas ParameterSchemas `json:"schemas,omitzero"`

	// machineCapacities holds the capacity of machines for each set of parameters. The controller uses the first element
	// that matches, and writes its capacity to the status of HookgateMachineTemplates and HookgateMachinePools, for an
	// autoscaler that scales from zero.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +optional
	MachineCapacities []MachineCapacity `json:"machineCapacities,omitempty"`
}

// MachineCapacity is the capacity (CPU, memory and so on) of machines with certain parameters.
type MachineCapacity struct {
	// parameters selects machines: the parameters of a machine must contain all these members, with the same values. If
	// parameters has no members, all machines match.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// capacity is the resources of the Nodes of these machines.
	// +kubebuilder:validation:XValidation:rule="self.size() <= 64",message="must have at most 64 resources"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is what the Nodes report about themselves.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitzero"`
}

// ParameterSchemas are the schemas of the parameters of each kind: OpenAPI v3 schemas, with what a
// CustomResourceDefinition allows in them.
//
// +kubebuilder:validation:MinProperties=1
type ParameterSchemas struct {
	// cluster is the schema of the parameters of HookgateClusters.
	// +kubebuilder:validation:Type=object
	// +optional
	Cluster *apiextensionsv1.JSON `json:"cluster,omitempty"`

	// machine is the schema of the parameters of HookgateMachines.
	// +kubebuilder:validation:Type=object
	// +optional
	Machine *apiextensionsv1.JSON `json:"machine,omitempty"`

	// machinePool is the schema of the parameters of HookgateMachinePools.
	// +kubebuilder:validation:Type=object
	// +optional
	MachinePool *apiextensionsv1.JSON `json:"machinePool,omitempty"`
}

// Announced reports whether the status has what the extension announces: its discovery has succeeded once.
func (c *InfrastructureClass) Announced() bool { return c.Status.ProviderIDPrefix != "" }

// ParametersOf returns the schema of the parameters of a kind, HookgateCluster, HookgateMachine or HookgateMachinePool,
// and the defaults of the parameters. The schema is nil if there is none. pool is the pool in question, and nil for the
// other kinds: pools that are made of machines have the parameters of machines.
func (c *InfrastructureClass) ParametersOf(
	kind string, pool *HookgateMachinePool,
) (schema, defaults *apiextensionsv1.JSON) {
	s, d := c.Status.Schemas, c.Spec.DefaultParameters
	switch {
	case kind == HookgateClusterKind:
		return s.Cluster, d.Cluster
	case kind == HookgateMachinePoolKind && !pool.OfMachines(c):
		return s.MachinePool, d.MachinePool
	default:
		return s.Machine, d.Machine
	}
}

// GetConditions returns the conditions of the class.
func (c *InfrastructureClass) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the class.
func (c *InfrastructureClass) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// InfrastructureClassList is a list of InfrastructureClasses.
//
// +kubebuilder:object:root=true
type InfrastructureClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []InfrastructureClass `json:"items"`
}
