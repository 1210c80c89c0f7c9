// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/registry"
)

// judged is a verdict that was logged, and on what.
type judged struct {
	policy  *policy.Policy
	verdict Verdict
}

// resolvePolicies resolves the policies that the manifests define.
func (d *Directory) resolvePolicies() (map[string]registry.Policies, map[string]Verdict) {
	policies := make([]Policy, 0, len(d.inventory.policies))
	for _, o := range d.inventory.policies {
		policies = append(policies, *o.policy)
	}
	return ResolvePolicies(policies, d.missing)
}

// missing tells what there is not of a policy's target.
func (d *Directory) missing(t Target) error {
	if _, ok := d.inventory.extensions[t.ExtensionConfig]; !ok {
		return fmt.Errorf("there is no ExtensionConfig %q", t.ExtensionConfig)
	}
	if t.Handler == "" {
		return nil
	}
	switch has, known := d.discovered.has(t.ExtensionConfig, t.Handler); {
	case !known:
		return fmt.Errorf("ExtensionConfig %q has not been discovered yet", t.ExtensionConfig)
	case !has:
		return fmt.Errorf("ExtensionConfig %q has no handler %q", t.ExtensionConfig, t.Handler)
	}
	return nil
}

// applyPolicies tells the registry what the manifests want. Targets need not be there yet.
func (d *Directory) applyPolicies() {
	resolved, _ := d.resolvePolicies()
	for name := range d.policies {
		if _, ok := resolved[name]; !ok {
			d.registry.SetPolicies(name, registry.Policies{})
		}
	}
	for name, p := range resolved {
		d.registry.SetPolicies(name, p)
	}
	d.policies = resolved
}

// reportPolicies logs the verdicts that are new. Before the first discoveries are over, most targets are missing, and
// nothing is logged.
func (d *Directory) reportPolicies() {
	if !d.settled {
		return
	}
	_, verdicts := d.resolvePolicies()
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		o := d.inventory.policies[name]
		now := judged{policy: o.policy.Compiled, verdict: verdicts[name]}
		if d.judged[name] == now {
			continue
		}
		d.judged[name] = now
		attributes := []any{"extensionPolicy", name, "at", o.String(), "reason", now.verdict.Reason, "message", now.verdict.Message}
		if now.verdict.Accepted() {
			d.logger.Info("policy is accepted", attributes...)
		} else {
			d.logger.Warn("policy is not accepted", attributes...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.judged)) {
		if _, ok := verdicts[name]; !ok {
			delete(d.judged, name)
			d.logger.Info("policy removed", "extensionPolicy", name)
		}
	}
}
