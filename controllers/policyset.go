// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/registry"
)

// PolicySet brings the ExtensionPolicies of a source into the registry, and says what has become of each. It belongs to one
// goroutine.
type PolicySet struct {
	served *Served
	exists func(extensionConfig string) bool
	logger *slog.Logger

	policies []Policy
	resolved map[string]registry.Policies // what the registry was told, by ExtensionConfig
	reported map[string]judged            // by name
}

// judged is a verdict that was logged, and on what.
type judged struct {
	policy  *policy.Policy
	verdict Verdict
}

// NewPolicySet returns a set without policies. exists tells whether there is an ExtensionConfig of that name, registered or
// not.
func NewPolicySet(served *Served, exists func(extensionConfig string) bool, logger *slog.Logger) *PolicySet {
	return &PolicySet{served: served, exists: exists, logger: logger, reported: map[string]judged{}}
}

// Set tells the registry what is wanted, in place of what was before. Targets need not be there yet.
func (s *PolicySet) Set(policies []Policy) {
	s.policies = policies
	resolved, _ := ResolvePolicies(policies, func(Target) error { return nil }) // what is missing makes no difference
	for name := range s.resolved {
		if _, ok := resolved[name]; !ok {
			s.served.SetPolicies(name, registry.Policies{})
		}
	}
	for name, p := range resolved {
		s.served.SetPolicies(name, p)
	}
	s.resolved = resolved
}

// Verdicts returns what has become of each policy, by its name. It changes when targets come and go.
func (s *PolicySet) Verdicts() map[string]Verdict {
	_, verdicts := ResolvePolicies(s.policies, s.missing)
	return verdicts
}

// missing tells what there is not of a policy's target.
func (s *PolicySet) missing(t Target) error {
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
func (s *PolicySet) Report(verdicts map[string]Verdict, at func(name string) string) {
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
