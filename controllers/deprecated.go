// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// The condition of an ExtensionConfig that names the handlers which implement a deprecated version of a hook. It is
// there only while there are some.
const (
	deprecatedCondition = "DeprecatedHookVersions"
	deprecatedReason    = "Deprecated"
)

// deprecatedMessage returns the message of the condition: empty if no handler implements a deprecated version.
func deprecatedMessage(handlers []registry.Handler, hooks *catalog.Catalog) string {
	byVersion := map[[3]string][]string{} // quoted names by apiVersion, since when, and what to implement instead
	for i := range handlers {
		if h, ok := hooks.Lookup(handlers[i].Hook); ok {
			if since, instead, ok := h.Deprecated(); ok {
				key := [3]string{h.APIVersion(), since, instead}
				byVersion[key] = append(byVersion[key], strconv.Quote(handlers[i].Name))
			}
		}
	}
	var all []string
	inOrder := func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(byVersion), inOrder) {
		names := slices.Sorted(slices.Values(byVersion[key]))
		noun, verb, pronoun := "handlers", "implement", "they"
		if len(names) == 1 {
			noun, verb, pronoun = "handler", "implements", "it"
		}
		all = append(all,
			fmt.Sprintf("%s %s %s %s, which is deprecated since %s of the gateway: %s should implement %s",
				noun, text.Join(names, ", ", maxListed), verb, key[0], key[1], pronoun, key[2]))
	}
	return text.Cut(strings.Join(all, "; "), limits.ConditionMessageBytes)
}
