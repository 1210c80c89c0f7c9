// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// needsState is the mistake of ExtensionRollouts without a state.
const needsState = "needs --state-dir, where the gateway keeps which Clusters have moved"

// setClosures closes what the mistaken objects of all kinds govern.
func (d *Source) setClosures() {
	byKind := d.inventory.Closures()
	for name, o := range d.inventory.Of(kinds.ExtensionRollout) {
		if d.state == nil {
			byKind[rollout.Kind] = append(byKind[rollout.Kind], registry.Closure{
				Kind: rollout.Kind, Name: name, Mistake: needsState,
				Extensions: slices.DeleteFunc([]string{name, o.Rollout.Spec.Stable, o.Rollout.Spec.Candidate},
					func(name string) bool { return name == "" }),
			})
		}
	}
	for _, before := range d.tracking.Snapshot().Closures() {
		if _, still := byKind[before.Kind]; !still {
			d.tracking.SetClosures(before.Kind, nil)
		}
	}
	for kind, closures := range byKind {
		d.tracking.SetClosures(kind, closures)
	}
}

// awaitMistaken makes calls wait for the ExtensionConfigs that have mistakes, and no longer for those that are gone.
func (d *Source) awaitMistaken() {
	all := d.inventory.Mistaken()
	keys := make([]string, 0, len(all))
	for i := range all {
		keys = append(keys, cmp.Or(all[i].Name, all[i].Unreadable))
	}
	gone := slices.DeleteFunc(d.mistaken, func(key string) bool {
		_, valid := d.inventory.Of(kinds.ExtensionConfig)[key]
		return valid || slices.Contains(keys, key)
	})
	if d.mistaken = keys; len(gone) > 0 {
		d.registry.RemoveAll(gone)
	}
	if len(all) > 0 {
		d.registry.SetUndiscovered(all)
	}
}
