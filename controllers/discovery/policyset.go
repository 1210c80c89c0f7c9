// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/registry"
)

// PolicySet brings the ExtensionPolicies of a source into the registry, and says what has become of each. It belongs to one
// goroutine, but for what anyone may ask.
type PolicySet struct {
	served *TrackingRegistry
	exists func(extensionConfig string) bool
	logger *slog.Logger

	policies []extensionconfig.Policy
	reported map[string]judged // by name

	resolved  atomic.Pointer[map[string]registry.Policies] // what the registry was told, by ExtensionConfig
	protocols atomic.Pointer[map[string]registry.Protocol] // by ExtensionConfig, those that are not REST
}

// judged is a verdict that was logged, and on what.
type judged struct {
	policy  *policy.Policy
	verdict extensionconfig.Verdict
}

// NewPolicySet returns a set without policies. exists tells whether there is an ExtensionConfig of that name, registered or
// not.
func NewPolicySet(served *TrackingRegistry, exists func(extensionConfig string) bool, logger *slog.Logger) *PolicySet {
	s := &PolicySet{served: served, exists: exists, logger: logger, reported: map[string]judged{}}
	s.resolved.Store(&map[string]registry.Policies{})
	s.protocols.Store(&map[string]registry.Protocol{})
	return s
}

// WithProtocol returns x with the protocol that policies say its extension speaks. A URL that says so itself stands. Anyone may
// ask, at any time.
func (s *PolicySet) WithProtocol(x extensionconfig.Extension) (extensionconfig.Extension, error) {
	protocol := (*s.protocols.Load())[x.Name]
	if protocol == x.ClientConfig.Protocol || x.ClientConfig.Protocol != registry.REST {
		return x, nil
	}
	x.ClientConfig.Protocol = protocol
	if err := x.ClientConfig.CheckURL(); err != nil {
		return x, fmt.Errorf("spec.clientConfig: %s: with protocol %s of its ExtensionPolicy, the URL %w", x.ClientConfig.URL, protocol, err)
	}
	return x, nil
}

// ClusterAPIVersion returns the version of Cluster API objects that a handler is called with: what its policy says, or else
// what the extension has stated. Anyone may ask, at any time.
func (s *PolicySet) ClusterAPIVersion(extensionConfig string, h registry.Handler) string {
	return (*s.resolved.Load())[extensionConfig].Override(h).ClusterAPIVersion
}

// Set tells the registry what is wanted, in place of what was before. Targets need not be there yet. It returns the names of
// the ExtensionConfigs whose protocol has changed, or the version of objects that a handler is called with, in order.
func (s *PolicySet) Set(policies []extensionconfig.Policy) (changed []string) {
	s.policies = policies
	resolved, _ := extensionconfig.ResolvePolicies(policies, func(extensionconfig.Target) error { return nil }) // what is missing makes no difference
	previous := *s.resolved.Load()
	for name := range previous {
		if _, ok := resolved[name]; !ok {
			s.served.SetPolicies(name, registry.Policies{})
		}
	}
	for name, p := range resolved {
		s.served.SetPolicies(name, p)
	}
	s.resolved.Store(&resolved)

	before, now := *s.protocols.Load(), extensionconfig.Protocols(policies, resolved)
	s.protocols.Store(&now)
	names := map[string]bool{}
	for name := range previous {
		names[name] = true
	}
	for name := range resolved {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != now[name] || !maps.Equal(versionsIn(previous[name]), versionsIn(resolved[name])) {
			changed = append(changed, name)
		}
	}
	return changed
}

// versionsIn returns the versions of objects in policies by handler, under "" that for all handlers; none if no policy says any.
func versionsIn(p registry.Policies) map[string]string {
	versions := map[string]string{}
	said := false
	add := func(handler string, compiled *policy.Policy) {
		if compiled != nil {
			versions[handler] = compiled.ClusterAPIVersion
			said = said || compiled.ClusterAPIVersion != ""
		}
	}
	add("", p.All)
	for handler, compiled := range p.Handlers {
		add(handler, compiled)
	}
	if !said {
		return nil
	}
	return versions
}

// Verdicts returns what has become of each policy, by its name. It changes when targets come and go.
func (s *PolicySet) Verdicts() map[string]extensionconfig.Verdict {
	_, verdicts := extensionconfig.ResolvePolicies(s.policies, s.missing)
	return verdicts
}

// missing tells what there is not of a policy's target.
func (s *PolicySet) missing(t extensionconfig.Target) error {
	if !s.exists(t.ExtensionConfig) {
		return fmt.Errorf("there is no ExtensionConfig %q", t.ExtensionConfig)
	}
	if t.Handler == "" {
		return nil
	}
	switch has, known := s.served.has(t.ExtensionConfig, t.Handler); {
	case !known:
		return fmt.Errorf("ExtensionConfig %q has not been discovered yet", t.ExtensionConfig)
	case !has:
		return fmt.Errorf("ExtensionConfig %q has no handler %q", t.ExtensionConfig, t.Handler)
	}
	return nil
}

// Report logs the verdicts that are new. at, if it is not nil, says where a policy is written.
func (s *PolicySet) Report(verdicts map[string]extensionconfig.Verdict, at func(name string) string) {
	for _, p := range s.policies {
		now := judged{policy: p.Compiled, verdict: verdicts[p.Name]}
		if s.reported[p.Name] == now {
			continue
		}
		s.reported[p.Name] = now
		attributes := []any{"extensionPolicy", p.Name}
		if at != nil {
			attributes = append(attributes, "at", at(p.Name))
		}
		attributes = append(attributes, "reason", now.verdict.Reason, "message", now.verdict.Message)
		if now.verdict.Accepted() {
			s.logger.Info("policy is accepted", attributes...)
		} else {
			s.logger.Warn("policy is not accepted", attributes...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.reported)) {
		if _, ok := verdicts[name]; !ok {
			delete(s.reported, name)
			s.logger.Info("policy removed", "extensionPolicy", name)
		}
	}
}
