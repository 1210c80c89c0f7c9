// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// needsState is the mistake of ExtensionRollouts without a state.
const needsState = "needs --state-dir, where the gateway records which Clusters have moved"

// items returns the objects of a kind. Without a directory to keep records in, ExtensionRollouts are not in effect.
func (d *Source) items(kind string) []kinds.Item {
	items := d.inventory.Items(kind)
	if kind != rollout.Kind || d.state != nil {
		return items
	}
	for i := range items {
		if items[i].Compiled == nil {
			continue
		}
		items[i].Compiled, items[i].Mistake = nil, needsState
		o := d.inventory.Of(kind)[items[i].Name]
		d.problems = append(d.problems, manifest.Problem{
			Place: o.Place, Object: fmt.Sprintf("%s %q", kind, o.Name), Err: errors.New(needsState),
			Effect: "it is not used, and calls of its members fail",
		})
	}
	return items
}

// setClosures closes what the mistaken objects of all kinds govern.
func (d *Source) setClosures() {
	byKind := d.inventory.Closures()
	if d.state == nil {
		for _, of := range manifest.In[registry.Rollout](d.inventory, rollout.Kind) {
			byKind[rollout.Kind] = append(byKind[rollout.Kind], registry.Closure{
				Kind: rollout.Kind, Name: of.Name, Mistake: needsState,
				Extensions: slices.DeleteFunc([]string{of.Name, of.Stable, of.Candidate},
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
		_, valid := d.inventory.Of(extensionconfig.Kind)[key]
		return valid || slices.Contains(keys, key)
	})
	if d.mistaken = keys; len(gone) > 0 {
		d.registry.RemoveAll(gone)
	}
	if len(all) > 0 {
		d.registry.SetUndiscovered(all)
	}
}
