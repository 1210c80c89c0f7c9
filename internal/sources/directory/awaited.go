// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// atStart is what is known of an ExtensionConfig that was there when the source started, before its first discovery.
type atStart struct {
	kept    kept // of the state
	known   bool // the state has them
	awaited bool // calls wait for them: nothing says that the extension was never discovered
}

// recall takes down which ExtensionConfigs were there when the source started. Those of a file that could not be read
// then count, too, as soon as it can be.
func (d *Source) recall(next *manifest.Inventory) {
	first := d.present == nil
	if first {
		d.present = map[string]atStart{}
		d.unreadable = slices.Clone(next.Unreadable)
	}
	for name, file := range next.Named {
		if _, ok := d.present[name]; ok || !first && !slices.Contains(d.unreadable, file) {
			continue
		}
		x := atStart{awaited: true}
		if d.state != nil {
			x.kept, x.known = d.state.load(name)
			x.awaited = !x.known && (len(d.state.found) == 0 || d.state.has(name))
		}
		d.present[name] = x
	}
	stays := func(file string) bool { return slices.Contains(next.Unreadable, file) }
	d.await(next.Unreadable, slices.DeleteFunc(d.awaitedFiles, stays))
	d.awaitedFiles = slices.Clone(next.Unreadable)
	d.unreadable = slices.DeleteFunc(d.unreadable, func(file string) bool { return !stays(file) })
	if len(next.Unreadable) > 0 {
		return // any of them may define what is missing
	}
	maps.DeleteFunc(d.present, func(name string, _ atStart) bool { _, ok := next.Named[name]; return !ok })
	if d.state != nil {
		d.state.forget(slices.DeleteFunc(d.state.found, func(name string) bool { _, ok := next.Named[name]; return ok })...)
		d.state.found = nil
	}
}

// recalled adds to x what is known of it since the start.
func (d *Source) recalled(x *extensionconfig.Extension) {
	if len(x.LastKnown) > 0 {
		x.LastClient = extensionconfig.LastClientOf(&x.Registration) // its manifest has both
	}
	known, ok := d.present[x.Name]
	if !ok {
		return
	}
	x.Awaited = known.awaited
	if known.known {
		x.LastKnown, x.LastClient, x.Discovered = known.kept.handlers, known.kept.at, true
	}
}

// await makes calls wait for unreadable files, and no longer for those that can be read or are gone.
func (d *Source) await(unreadable, read []string) {
	all := make([]registry.Undiscovered, 0, len(unreadable))
	for _, file := range unreadable {
		all = append(all, registry.Undiscovered{Unreadable: unreadableName(file), Default: hook.Fail})
	}
	if len(all) > 0 {
		d.registry.SetUndiscovered(all)
	}
	gone := make([]string, 0, len(read))
	for _, file := range read {
		gone = append(gone, unreadableName(file))
	}
	if len(gone) > 0 {
		d.registry.RemoveAll(gone)
	}
}

// unreadableName names a file for callers, who need not know where it is.
func unreadableName(file string) string { return fmt.Sprintf("manifest %q", filepath.Base(file)) }
