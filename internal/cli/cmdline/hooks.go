// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/text"
)

// HookNamed returns the hook with a name, in any letter case.
func HookNamed(hooks *catalog.Catalog, name string) (*catalog.Hook, error) {
	h, ok := hooks.ByName(name)
	if !ok {
		return nil, Usagef("no hook %q, did you mean %s? The hooks are %s",
			name, nearestHook(hooks, name), HookNames(hooks))
	}
	return h, nil
}

// HookNames returns the names of the hooks.
func HookNames(c *catalog.Catalog) string {
	var names []string
	for _, h := range c.Hooks() {
		names = append(names, h.Hook)
	}
	return strings.Join(names, ", ")
}

// nearestHook returns the hook whose name takes the fewest edits to reach; the first by name of several.
func nearestHook(c *catalog.Catalog, name string) string {
	nearest, least := "", -1
	for _, h := range c.Hooks() {
		if d := text.EditDistance(strings.ToLower(name), strings.ToLower(h.Hook)); least < 0 || d < least {
			nearest, least = h.Hook, d
		}
	}
	return nearest
}
