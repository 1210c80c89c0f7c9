// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// The condition SeveralOffered says that handlers of an ExtensionConfig are offered beside others though Cluster API
// takes one of the hook in all: it calls none of them then. The gateway calls them as before for other callers, so the
// ExtensionConfig stays ready.
const (
	severalCondition = "SeveralOffered"
	severalReason    = v1alpha1.SeveralOfferedReason
)

// severalOffered returns the messages of the condition SeveralOffered, by ExtensionConfig.
func severalOffered(s *registry.Snapshot, hooks *catalog.Catalog) map[string]string {
	messages := map[string]string{}
	for _, h := range hooks.Hubs() {
		message := kinds.SeveralOffered(s, h)
		if message == "" {
			continue
		}
		of := map[string]bool{}
		_, steps := s.StandsFor(h.GroupHook())
		for _, e := range s.Handlers(h.GroupHook()) {
			if !steps[e.Name] && e.Registration.InProcess == nil {
				of[e.Registration.Name] = true
			}
		}
		for extensionConfig := range of {
			if before := messages[extensionConfig]; before != "" {
				messages[extensionConfig] = before + "; " + message
			} else {
				messages[extensionConfig] = message
			}
		}
	}
	return messages
}

// differing returns the keys whose values differ, in order.
func differing[V comparable](a, b map[string]V) []string {
	keys := map[string]bool{}
	for _, m := range []map[string]V{a, b} {
		for key := range m {
			if a[key] != b[key] {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
