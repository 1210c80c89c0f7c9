// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/registry"
)

// Target is a handler that a request is for: a registered one, or a chain of them.
type Target struct {
	Entry *registry.Entry // nil for a chain
	// PolicyError says why the handler's policy could not be evaluated, if it could not.
	PolicyError error

	Chain *registry.Chain
	Steps []Target // of Chain

	// Member is set for a handler of a Rollout's member.
	Member *Member

	// What the chain says of a handler that is a step.
	Settings map[string]string
	Allow    []string
	Stops    bool // while it holds
}

// Name returns the name under which the handler is called.
func (t Target) Name() string {
	if t.Chain != nil {
		return t.Chain.Name
	}
	return t.Entry.Name
}

// NamesOf returns the function that returns the name of each target.
func NamesOf(targets []Target) func(i int) string {
	return func(i int) string { return targets[i].Name() }
}

// HasOrder reports whether a policy wants the handler to be called before those without an order.
func (t Target) HasOrder() bool {
	return t.Chain == nil && t.Entry.Policy != nil && t.Entry.Policy.Order != nil
}

// InOrder returns the indexes of the targets that have an order: lowest order first, and by name where it is the same,
// as the targets are sorted by name. It returns nil if no target has an order.
func InOrder(targets []Target) []int {
	var indexes []int
	for i, t := range targets {
		if t.HasOrder() {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int {
		return cmp.Compare(*targets[a].Entry.Policy.Order, *targets[b].Entry.Policy.Order)
	})
	return indexes
}

// AllSettings returns the settings that are added to requests of a Target: those of a chain's step over those of the
// ExtensionConfig.
func (t Target) AllSettings() map[string]string {
	if len(t.Settings) == 0 {
		return t.Entry.Registration.Settings
	}
	all := maps.Clone(t.Settings)
	for name, value := range t.Entry.Registration.Settings {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	return all
}

// Seen returns the name under which callers see what is called.
func (t Target) Seen() string {
	if t.Member == nil {
		return t.Name()
	}
	return t.Entry.Handler.Name + "." + t.Member.Name
}
