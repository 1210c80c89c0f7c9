// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// ask asks an extension for the handlers of a group, with one version of the hook that lists them. It reports whether
// the extension does not have the hook in that version.
type ask func(h *catalog.Hook) (d Discovered, absent bool, err *hook.Error)

// discoverGroups asks an extension for the handlers of every group of hooks. If it has no group at all, it is absent,
// and the error is that of the first group.
//
// A group that the extension is known not to have, besides the first, is not asked for.
//
// An error of the first group is the error of all. Of another group it is not, unless there is no other answer, because
// servers exist that answer paths that they do not know with an error.
func discoverGroups(
	c *catalog.Catalog, url string, absences *absences, ask ask,
) (d Discovered, absent bool, err *hook.Error) {
	var first *hook.Error
	var main []registry.Handler // of the first group
	answered, hasFirst := false, false
	for i, versions := range c.Discoveries() {
		name := versions[0].Group
		if hasFirst && absences.has(url, name, main) {
			continue
		}
		group, absent, err := discoverNewest(versions, ask)
		if err == nil {
			err = beside(versions[0], group.Handlers, d.Handlers)
		}
		switch {
		case err == nil:
			answered = true
			absences.remove(url, name)
			if i == 0 {
				hasFirst, main = true, group.Handlers
			}
			d.Handlers, d.Skipped = append(d.Handlers, group.Handlers...), append(d.Skipped, group.Skipped...)
			d.Misspelt = append(d.Misspelt, group.Misspelt...)
		case i == 0 && !absent:
			return Discovered{}, false, err
		case absent:
			first = cmp.Or(first, err)
			if hasFirst {
				absences.add(url, name, main)
			}
		default:
			d.Unanswered = append(d.Unanswered, Unanswered{Hook: versions[0].GroupHook(), Err: err})
		}
	}
	switch {
	case !answered && len(d.Unanswered) > 0:
		return Discovered{}, false, d.Unanswered[0].Err
	case !answered:
		return Discovered{}, true, first
	}
	slices.SortFunc(d.Handlers, func(a, b registry.Handler) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Skipped, func(a, b Skipped) int { return cmp.Compare(a.Name, b.Name) })
	return d, false, nil
}

// discoverNewest asks with each version, the newest first, until the extension has one. If it has none, the error is
// that of the newest version.
func discoverNewest(versions []*catalog.Hook, ask ask) (d Discovered, absent bool, err *hook.Error) {
	for _, h := range versions {
		d, absent, failed := ask(h)
		if failed == nil || !absent {
			return d, false, failed
		}
		err = cmp.Or(err, failed)
	}
	return Discovered{}, true, err
}

// beside returns an error if an extension cannot have the handlers of a group besides those of the groups before it. A
// handler is called by its name, whatever its hook.
func beside(asked *catalog.Hook, handlers, before []registry.Handler) *hook.Error {
	for _, h := range handlers {
		if slices.ContainsFunc(before, func(b registry.Handler) bool { return b.Name == h.Name }) {
			return hook.Errorf(hook.BadResponse, "%s: answer: handler %q has the name of a handler of another group",
				discoveringWith(asked), h.Name)
		}
	}
	if n := len(handlers) + len(before); n > limits.Handlers {
		return hook.Errorf(hook.BadResponse, "%s: answer: with the handlers of other groups, there are %d handlers, "+
			"which is more than %d: split them over several extensions", discoveringWith(asked), n, limits.Handlers)
	}
	return nil
}
