// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

// The condition of an ExtensionConfig that tells which handlers implement a version of a hook that is deprecated. It is there only while
// there is one.
const (
	deprecatedCondition = "DeprecatedHookVersions"
	deprecatedReason    = "Deprecated"
)

// deprecatedMessage returns the message of the condition: empty if no handler implements a deprecated version.
func deprecatedMessage(handlers []registry.Handler, hooks *catalog.Catalog) string {
	byVersion := map[[3]string][]string{} // names by apiVersion, since when, and what to implement instead
	for i := range handlers {
		if h, ok := hooks.Lookup(handlers[i].Hook); ok {
			if since, instead, ok := h.Deprecated(); ok {
				key := [3]string{h.APIVersion(), since, instead}
				byVersion[key] = append(byVersion[key], handlers[i].Name)
			}
		}
	}
	var all []string
	for _, key := range slices.SortedFunc(maps.Keys(byVersion), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		names := byVersion[key]
		slices.Sort(names)
		subject, verbs := "handlers ", [2]string{"implement", "they"}
		if len(names) == 1 {
			subject, verbs = "handler ", [2]string{"implements", "it"}
		}
		for i, name := range names[:min(len(names), maxListed)] {
			if i > 0 {
				subject += ", "
			}
			subject += strconv.Quote(name)
		}
		if more := len(names) - maxListed; more > 0 {
			subject += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, fmt.Sprintf("%s %s %s, which is deprecated since %s of the gateway: %s should implement %s",
			subject, verbs[0], key[0], key[1], verbs[1], key[2]))
	}
	return cut(strings.Join(all, "; "), maxMessage)
}
