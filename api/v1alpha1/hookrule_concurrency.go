// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SkipHoldAnnotation of a Cluster names HookRules, separated by commas, that do not hold the Cluster: whatever the
// rules wait for, the Cluster goes on. A rule with concurrency counts the Cluster even beyond the limit. Whoever may
// annotate the Cluster may set this annotation. The annotation has an effect until it is removed from the Cluster.
const SkipHoldAnnotation = "hookgate.dev/skip-hold"

// HookRuleConcurrency bounds the number of Clusters that are past a blocking hook at the same time.
type HookRuleConcurrency struct {
	// limit is the number of Clusters that may be past the hook at the same time, for each value of per.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +required
	Limit int32 `json:"limit,omitempty"`

	// per is an expression whose value is a text of at most 253 bytes. Clusters with different values do not wait for each
	// other. Without per, all Clusters of the rule share the limit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Per string `json:"per,omitempty"`

	// retryAfterSeconds is how soon a caller that waits for a place should call again. The default is 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`
}
