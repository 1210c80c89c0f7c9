// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"

	"github.com/hookgate/hookgate/policy"
)

// Policies are what the operator says about the handlers of one ExtensionConfig. A handler has one policy at most: its own,
// or else the one for all. It is immutable once it was handed to Registry.SetPolicies.
type Policies struct {
	// All is for the handlers that have none of their own; nil for none.
	All *policy.Policy
	// Handlers are by the name that discovery gave, without the ExtensionConfig's.
	Handlers map[string]*policy.Policy
}

// of returns the policy of a handler, or nil.
func (p Policies) of(handler string) *policy.Policy {
	if own := p.Handlers[handler]; own != nil {
		return own
	}
	return p.All
}

func (p Policies) empty() bool { return p.All == nil && len(p.Handlers) == 0 }

func (p Policies) equal(o Policies) bool { return p.All == o.All && maps.Equal(p.Handlers, o.Handlers) }

// Override returns h, as discovery described it, with the settings that its policy has in their place.
func (p Policies) Override(h Handler) Handler { return overridden(h, p.of(h.Name)) }

// overridden returns h with the settings that p has in their place.
func overridden(h Handler, p *policy.Policy) Handler {
	if p == nil {
		return h
	}
	if p.Timeout > 0 {
		h.Timeout = min(p.Timeout, MaxTimeout)
	}
	if p.FailurePolicy != "" {
		h.FailurePolicy = p.FailurePolicy
	}
	if p.ClusterAPIVersion != "" {
		h.ClusterAPIVersion = p.ClusterAPIVersion
	}
	return h
}

// SetPolicies says what the operator wants of the handlers of an ExtensionConfig, in place of what was said before; the zero
// value takes everything back. It holds for the handlers that there are, and for all that come: neither the
// ExtensionConfig nor the handlers need be registered. Policies that are the same as before, pointer by pointer, change
// nothing.
func (r *Registry) SetPolicies(extensionConfig string, p Policies) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	if s.policies[extensionConfig].equal(p) {
		return
	}
	p.Handlers = maps.Clone(p.Handlers)
	policies := maps.Clone(s.policies)
	if p.empty() {
		delete(policies, extensionConfig)
	} else {
		policies[extensionConfig] = p
	}

	var next *Snapshot
	if c, ok := s.byConfig[extensionConfig]; ok {
		next = s.with(extensionConfig, s.newConfig(c.registration, p))
	} else {
		// Nobody sees a difference yet, and the generation stays.
		same := *s
		next = &same
	}
	next.policies = policies
	r.current.Store(next)
}
