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
		if nearest := text.Nearest(name, hookNames(hooks)); nearest != "" {
			return nil, Usagef("no hook %q, did you mean %s?", name, nearest)
		}
		return nil, Usagef("no hook %q. The hooks are %s", name, HookNames(hooks))
	}
	return h, nil
}

// HookNames returns the names of the hooks.
func HookNames(c *catalog.Catalog) string { return strings.Join(hookNames(c), ", ") }

func hookNames(c *catalog.Catalog) (names []string) {
	for _, h := range c.Hooks() {
		names = append(names, h.Hook)
	}
	return names
}
