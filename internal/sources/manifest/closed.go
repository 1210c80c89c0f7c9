// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
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

// Mistaken returns the ExtensionConfigs that have mistakes, which calls wait for.
func (v *Inventory) Mistaken() (all []registry.Undiscovered) {
	for _, c := range v.Closed[extensionconfig.Kind] {
		all = append(all, *c.Extension)
	}
	return all
}
