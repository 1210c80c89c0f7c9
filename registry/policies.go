// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"maps"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Policy is what an ExtensionPolicy, or the selection of a registration, says of the calls to handlers, with compiled
// conditions. Nil says nothing.
type Policy = policy.Policy

// Policies holds the operator's policies for the handlers of one ExtensionConfig. What the policy of one handler does
// not set comes from the one for all. The policies must not change after Registry.SetPolicies.
type Policies struct {
	// All applies to all handlers. It may be nil.
	All *Policy
	// Handlers maps names of handlers, without the name of the ExtensionConfig, to their own policies.
	Handlers map[string]*Policy
}

// Of returns the policy of a handler, or nil if it has none.
func (p Policies) Of(handler string) *Policy { return p.Handlers[handler].Over(p.All) }

func (p Policies) empty() bool { return p.All == nil && len(p.Handlers) == 0 }

func (p Policies) equal(o Policies) bool { return p.All == o.All && maps.Equal(p.Handlers, o.Handlers) }

// Override returns h, as discovery described it, with the settings of its policy applied.
func (p Policies) Override(h Handler) Handler { return override(h, p.Of(h.Name)) }

func override(h Handler, p *policy.Policy) Handler {
	if p == nil {
		return h
	}
	if p.Timeout > 0 {
		h.Timeout = min(p.Timeout, limits.Timeout)
	}
	if p.FailurePolicy != "" {
		h.FailurePolicy = p.FailurePolicy
	}
	if p.ClusterAPIRelease != "" {
		h.ClusterAPIRelease = p.ClusterAPIRelease
		h.ClusterAPIVersion = cmp.Or(catalog.ObjectVersion(h.Hook.Hook, p.ClusterAPIRelease), h.ClusterAPIVersion)
	}
	if p.ClusterAPIVersion != "" {
		h.ClusterAPIVersion = p.ClusterAPIVersion
	}
	return h
}

// AllPolicies returns the policies by ExtensionConfig, registered or not. Callers must not change the map.
func (s *Snapshot) AllPolicies() map[string]Policies { return s.policies }

// SetPolicies replaces the policies for the handlers of an ExtensionConfig; the zero value removes them. They apply to
// registered handlers and to handlers registered later. Setting the same pointers again changes nothing.
func (r *Registry) SetPolicies(extensionConfig string, p Policies) {
	r.SetAllPolicies(map[string]Policies{extensionConfig: p})
}

// SetAllPolicies sets the policies of several ExtensionConfigs, by name, as SetPolicies does. All changes are visible
// at once. The policies of other ExtensionConfigs stay.
func (r *Registry) SetAllPolicies(byConfig map[string]Policies) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	var policies map[string]Policies // nil until one of them changes
	var d *draft                     // nil until a handler changes
	for name, p := range byConfig {
		if s.policies[name].equal(p) {
			continue
		}
		if policies == nil {
			policies = maps.Clone(s.policies)
		}
		p.Handlers = maps.Clone(p.Handlers)
		if p.empty() {
			delete(policies, name)
		} else {
			policies[name] = p
		}
		if c, ok := s.byConfig[name]; ok {
			if d == nil {
				d = s.draft()
			}
			d.place(name, s.newConfig(c.registration, p))
		}
	}
	if policies == nil {
		return
	}
	same := *s // if no handler changes, the generation stays
	next := &same
	if d != nil {
		next = d.finish()
	}
	next.policies = policies
	r.current.Store(next)
}
