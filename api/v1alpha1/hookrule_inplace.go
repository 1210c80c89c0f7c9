// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HookRuleAllow is a path whose change needs no new Machine.
type HookRuleAllow struct {
	// path is a JSON pointer that begins with an object of the request and its spec: /machine/spec/version,
	// /infrastructureMachine/spec or /bootstrapConfig/spec/files; for CanUpdateMachineSet, below
	// /machineSet/spec/template/spec, /infrastructureMachineTemplate/spec/template/spec and
	// /bootstrapConfigTemplate/spec/template/spec. It names members of objects: a list changes as a whole.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^/[^/]"
	// +required
	Path string `json:"path,omitempty"`

	// affectsAvailability says whether a Machine may be unavailable while the value at this path changes. If so, Cluster
	// API (since v1.15) first adds another Machine. The default is true. The affectsAvailability of the answer is false if
	// this field is false for every path that changes.
	// +optional
	AffectsAvailability *bool `json:"affectsAvailability,omitempty"`
}
