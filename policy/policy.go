// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/admission"
	"github.com/hookgate/hookgate/internal/circuit"
)

// Policy is the content of one ExtensionPolicy. Zero fields leave the settings of the extension unchanged.
type Policy struct {
	// Name is the name of the ExtensionPolicy.
	Name string

	// Timeout replaces the handler's timeout for one call.
	Timeout time.Duration
	// FailurePolicy replaces the handler's failure policy.
	FailurePolicy hook.FailurePolicy
	// ClusterAPIVersion replaces the version of embedded Cluster API objects that the extension states.
	ClusterAPIVersion string
	// Order puts the handler before those without an order, lowest first. Nil means no order.
	Order *int32

	// Limits, Circuit and CacheTTL concern the whole extension, and are set only in a policy for all handlers. Nil means
	// the defaults.
	Limits  *admission.Limits
	Circuit *circuit.Settings
	// CacheTTL is for how long answers of deterministic hooks are kept. Zero means that they are not.
	CacheTTL time.Duration

	// ObjectSelector matches the labels of the object that a request is about. Nil matches all.
	ObjectSelector labels.Selector
	// Conditions match the request. Nil matches all.
	Conditions *Conditions
}
