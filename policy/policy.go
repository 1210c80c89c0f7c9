// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
)

// Policy is what one ExtensionPolicy says. Its zero values leave everything as the extension has it.
type Policy struct {
	// Name is that of the ExtensionPolicy.
	Name string

	// Timeout bounds one call, in place of the handler's own; 0 leaves it.
	Timeout time.Duration
	// FailurePolicy takes the place of the handler's own; empty leaves it.
	FailurePolicy hook.FailurePolicy
	// ClusterAPIVersion is the version of embedded Cluster API objects that the handler understands, in place of what its
	// extension states; empty leaves it.
	ClusterAPIVersion string
	// Order puts the handler before those without, lowest first; nil leaves it among them.
	Order *int32

	// ObjectSelector decides by the labels of the object that a request is about. Nil matches all.
	ObjectSelector labels.Selector
	// Conditions decide by the request. Nil match all.
	Conditions *Conditions
}
