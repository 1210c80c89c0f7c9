// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// Passage is what a hold is lifted for: one handler, by the name that discovery gave, at one hook of one Cluster. For
// hooks of upgrades it is one version, too.
type Passage struct {
	Handler, Hook           string
	Namespace, Cluster, UID string
	Version                 string
}

// LiftedHolds are the holds of an extension that a policy lifts.
type LiftedHolds struct {
	// By is the name of the ExtensionPolicy.
	By string
	// Of are the passages that are not held.
	Of []Passage
}

// List returns the passages. Nil has none.
func (l *LiftedHolds) List() []Passage {
	if l == nil {
		return nil
	}
	return l.Of
}

// Has reports whether a hold is lifted. Nil lifts none.
func (l *LiftedHolds) Has(p Passage) bool { return l != nil && slices.Contains(l.Of, p) }
