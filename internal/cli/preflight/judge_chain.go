// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// chainFindings returns the findings about chains, of whose steps others were found, and about hooks with several
// handlers of which Cluster API takes one.
func (t *Target) chainFindings(v *Inventory, found []Finding) []Finding {
	broken := map[string]bool{}
	for i := range found {
		if f := &found[i]; f.Level == Break && f.Handler != "" {
			broken[f.Handler+"."+cmp.Or(f.ExtensionConfig, f.HookRule, f.HookJob)] = true
		}
	}
	var findings []Finding
	for i := range v.Chains {
		findings = append(findings, t.chain(&v.Chains[i], broken))
	}
	for _, s := range v.Several {
		if f, ok := t.several(s); ok {
			findings = append(findings, f)
		}
	}
	return findings
}

// chain returns the finding about a chain. broken are the handlers that would not be called.
func (t *Target) chain(c *Chain, broken map[string]bool) Finding {
	f := Finding{Level: OK, Rule: ruleOK, HandlerChain: c.Name, Hook: t.described(c.Hook), Location: c.Location}
	var steps []string
	for _, name := range c.Steps {
		if broken[name] {
			steps = append(steps, name)
		}
	}
	switch {
	case len(steps) > 0:
		f.Level, f.Rule = Break, ruleChainBroken
		f.Problem = "calls of the chain would fail, because of its steps " + text.Join(steps, ", ", limits.Problems)
		f.Remedy = "do what the findings about these handlers say, or take them out of the chain"
	case c.Broken != "":
		f.Level, f.Rule = Warn, ruleChainNotReady
		f.Problem, f.Remedy = "calls of the chain fail: "+c.Broken, "correct or delete the chain"
	default:
		f.Problem = "nothing keeps its steps from being called"
	}
	return f
}

// several returns a finding, and true, if the Cluster API of the target calls a hook that has several handlers. It is
// no news to one that calls the hook already.
func (t *Target) several(s SeveralHandlers) (Finding, bool) {
	calls := func(r *catalog.ClusterAPIRelease) bool {
		if r == nil {
			return false
		}
		called, ok := r.Hook(s.Hook.Hook)
		return ok && called.Group == s.Hook.Group
	}
	f := Finding{
		Level: Break, Rule: ruleSeveral, Hook: t.described(s.Hook), Problem: s.Problem,
		Remedy: "combine them into a HandlerChain, which is offered in place of its steps, or delete all but one",
	}
	if t.ClusterAPI == nil || calls(t.From) {
		f.Level = Warn
	}
	return f, t.ClusterAPI == nil || calls(t.ClusterAPI)
}

// described returns group/version/hook of a hook; empty for none.
func (t *Target) described(gh hook.GroupHook) string {
	hubs := t.Hooks.Hubs()
	i := slices.IndexFunc(hubs, func(h *catalog.Hook) bool { return h.GroupHook() == gh })
	if i < 0 {
		return ""
	}
	return fmt.Sprint(hubs[i].GroupVersionHook)
}
