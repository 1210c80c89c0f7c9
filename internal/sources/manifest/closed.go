// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Closures returns what the mistaken objects close, by kind.
func (v *Inventory) Closures() map[string][]registry.Closure {
	byKind := map[string][]registry.Closure{}
	for kind, all := range v.Closed {
		for _, c := range all {
			if !c.Nothing() {
				byKind[kind] = append(byKind[kind], c.Closure)
			}
		}
	}
	return byKind
}

// ClosedRegistrations returns what stands for the closed objects of a kind without servers.
func (v *Inventory) ClosedRegistrations(kind string) (all []registry.Registration) {
	for _, c := range v.Closed[kind] {
		if c.Registration != nil {
			all = append(all, *c.Registration)
		}
	}
	return all
}

// ClosedChains returns what stands for the closed HandlerChains.
func (v *Inventory) ClosedChains() (all []registry.Chain) {
	for _, c := range v.Closed[kinds.HandlerChain] {
		if c.Chain != nil {
			all = append(all, *c.Chain)
		}
	}
	return all
}

// Mistaken returns the ExtensionConfigs that have mistakes, which calls wait for.
func (v *Inventory) Mistaken() (all []registry.Undiscovered) {
	for _, c := range v.Closed[kinds.ExtensionConfig] {
		all = append(all, *c.Extension)
	}
	return all
}
