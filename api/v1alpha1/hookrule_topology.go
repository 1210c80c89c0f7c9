// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// HookRulePatch patches templates of a topology, which are the items of a request of GeneratePatches. It has either
// jsonPatches or mergePatch. Each value is one expression, instead of the value, valueFrom or text template of a
// patch in a ClusterClass.
//
// Expressions have these variables besides request and params: item is the item of the request; object is its template,
// as the entries before this one have patched it; settings are the settings of the request, with texts as values; and
// variables are the variables of the topology by name, as in variables.imageRepository. A variable of the item takes
// precedence over one of the request. The variable builtin has the members of both; here too, the members of the item
// take precedence.
//
// +kubebuilder:validation:XValidation:rule="has(self.jsonPatches) != has(self.mergePatch)",message="must have one of jsonPatches and mergePatch"
type HookRulePatch struct {
	// selector selects the templates.
	// +required
	Selector HookRuleItemSelector `json:"selector,omitzero"`

	// enabledIf is an expression that is true for the selected templates that are patched. Without it, all selected
	// templates are patched.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	EnabledIf string `json:"enabledIf,omitempty"`

	// jsonPatches are the operations of a JSON patch (RFC 6902), in their order.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	JSONPatches []HookRuleJSONPatch `json:"jsonPatches,omitempty"`

	// mergePatch is an expression whose value is a JSON merge patch (RFC 7386), as in
	// {"spec": {"template": {"spec": {"image": variables.image}}}}. It makes the objects that the template lacks, and null
	// removes a member. It can change what jsonPatches can change.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	MergePatch string `json:"mergePatch,omitempty"`
}

// HookRuleJSONPatch is an operation of a JSON patch.
//
// +kubebuilder:validation:XValidation:rule="(self.op != 'remove') == has(self.value)",message="add and replace must have a value, and remove must not have one"
type HookRuleJSONPatch struct {
	// op is add, replace or remove.
	// +kubebuilder:validation:Enum=add;replace;remove
	// +required
	Op string `json:"op,omitempty"`

	// path is a JSON pointer to what is changed: /spec, /metadata/labels or /metadata/annotations of the template, or
	// something in them, because Cluster API drops other changes. A path that ends in /- adds an element to the end of a
	// list. The object or list to which something is added must exist; mergePatch makes what is missing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Path string `json:"path,omitempty"`

	// value is an expression whose value, in JSON, is what add and replace write.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`
}

// HookRuleItemSelector selects templates of a topology as a patch of a ClusterClass does.
type HookRuleItemSelector struct {
	// apiVersion is the apiVersion of the templates, such as infrastructure.cluster.x-k8s.io/v1beta2. Without it,
	// templates of any apiVersion are selected.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the templates, such as KubeadmControlPlaneTemplate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind,omitempty"`

	// matchResources restricts the selector to the templates that certain objects use. Without it, all templates of the
	// kind are selected. Finer distinctions can be made with item.holderReference in an expression.
	// +optional
	MatchResources *HookRuleMatchResources `json:"matchResources,omitempty"`
}

// HookRuleMatchResources selects templates by the objects that use them. A template needs to match only one of the
// fields.
//
// +kubebuilder:validation:MinProperties=1
type HookRuleMatchResources struct {
	// controlPlane selects the template of the control plane and the template of its machines.
	// +optional
	ControlPlane bool `json:"controlPlane,omitempty"`

	// infrastructureCluster selects the template of the infrastructure of the Cluster.
	// +optional
	InfrastructureCluster bool `json:"infrastructureCluster,omitempty"`

	// machineDeploymentClass selects templates of MachineDeployments.
	// +optional
	MachineDeploymentClass *HookRuleWorkerClass `json:"machineDeploymentClass,omitempty"`

	// machinePoolClass selects templates of MachinePools.
	// +optional
	MachinePoolClass *HookRuleWorkerClass `json:"machinePoolClass,omitempty"`
}

// HookRuleWorkerClass selects workers by their class.
type HookRuleWorkerClass struct {
	// names are names of classes. A * at the beginning or at the end of a name stands for any text.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +required
	Names []string `json:"names,omitempty"`
}

// HookRuleVariable defines a variable for ClusterClasses that discover variables with the rule.
type HookRuleVariable struct {
	// name is the name of the variable. It has no dot, and is not builtin.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self != 'builtin' && !self.contains('.')",message="must not be builtin, and must not have a dot"
	// +required
	Name string `json:"name,omitempty"`

	// required says whether each Cluster must set the variable. The default is false.
	// +optional
	Required bool `json:"required,omitempty"`

	// schema is the schema of the values.
	// +required
	Schema HookRuleVariableSchema `json:"schema,omitzero"`
}

// HookRuleVariableSchema is the schema of the values of a variable.
type HookRuleVariableSchema struct {
	// openAPIV3Schema is a schema of at most 64 KiB, in the form that variables of a ClusterClass have.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +required
	OpenAPIV3Schema *apiextensionsv1.JSON `json:"openAPIV3Schema,omitempty"`
}

// HookRuleValidation refuses topologies. Its expressions have these variables besides request and params: settings and
// variables, as in patches; and, with a selector, item and object, which is the template of the item.
//
// +kubebuilder:validation:XValidation:rule="has(self.if) != has(self.unless)",message="must have one of if and unless"
type HookRuleValidation struct {
	// selector selects templates, each of which is validated. Without it, the request is validated as a whole.
	// +optional
	Selector *HookRuleItemSelector `json:"selector,omitempty"`

	HookRuleDecision `json:",inline"`
}
