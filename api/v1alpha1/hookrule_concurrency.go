// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SkipHoldAnnotation of a Cluster names HookRules, separated by commas, that do not hold it: whatever they wait for,
// the Cluster goes on. A rule with concurrency counts it beyond the limit. Whoever may annotate the Cluster may do
// so. It counts as long as it is there.
const SkipHoldAnnotation = "hookgate.dev/skip-hold"

// HookRuleConcurrency bounds the number of Clusters that are past a blocking hook at the same time.
type HookRuleConcurrency struct {
	// limit is the number of Clusters that may be past the hook at the same time, for each value of per.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +required
	Limit int32 `json:"limit,omitempty"`

	// per is an expression whose value is a text of at most 253 bytes. Clusters with different values do not wait for
	// each other. Without it, all Clusters of the rule share the limit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Per string `json:"per,omitempty"`

	// retryAfterSeconds is how soon a caller that waits for a place is to ask again. The default is 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`
}

// HookRulePlace is a Cluster that is past the hook of a rule with concurrency.
type HookRulePlace struct {
	// namespace is the namespace of the Cluster.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the Cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`

	// uid is the UID of the Cluster, if the caller has sent it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	UID string `json:"uid,omitempty"`

	// per is the value of per for the Cluster.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Per string `json:"per,omitempty"`

	// topologyVersion is the version of Kubernetes that the Cluster was to have when it took the place, for hooks of
	// upgrades: with another one, the upgrade is over or has been given up.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	TopologyVersion string `json:"topologyVersion,omitempty"`

	// since is when the Cluster took the place.
	// +required
	Since metav1.Time `json:"since,omitempty,omitzero"`
}
