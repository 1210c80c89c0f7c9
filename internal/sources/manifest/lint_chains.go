// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// lintChains returns what keeps chains and rules from being called, and which handlers would be offered beside others
// though Cluster API takes one. Steps of an ExtensionConfig without handlers in its status, or that is not defined
// here, are taken to exist.
func (v *Inventory) lintChains(
	policies []extensionpolicy.Policy, documents map[Place]*document, hooks *catalog.Catalog,
) []Problem {
	var configs []extensionconfig.Assembled
	for _, o := range v.Of(extensionconfig.Kind) {
		x := o.Extension
		config := extensionconfig.Assembled{Registration: x.Registration, Known: len(x.LastKnown) > 0 || x.Discovered}
		config.Handlers = x.LastKnown
		configs = append(configs, config)
	}
	rules, chains := In[registry.Registration](v, hookrule.Kind), In[registry.Chain](v, handlerchain.Kind)
	resolved, _ := extensionpolicy.Resolve(policies, func(extensionpolicy.Target) error { return nil })
	all, refused := extensionconfig.Assemble(configs, rules, resolved, chains, hooks)
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if _, ok := v.Of(extensionconfig.Kind)[name]; ok {
			problems = append(problems, v.ofExtension(name, fmt.Errorf("status.handlers: %w", refused[name])))
		}
	}
	for i := range rules {
		if taken := all.TakenLocal(rules[i].InProcess.Kind(), rules[i].Name); taken != "" {
			d := documents[v.Of(hookrule.Kind)[rules[i].Name].Place]
			d.name = rules[i].Name
			problems = append(problems, d.problemAt("metadata.name",
				fmt.Errorf("metadata.name: the name is also %s: rename one of the two", taken)))
		}
	}
	for _, name := range all.Shadowed() {
		problems = append(problems, v.ofExtension(name,
			fmt.Errorf("metadata.name: the name is also %s, so the extension is not called: rename the ExtensionConfig",
				all.TakenByLocal(name))))
	}
	for _, c := range all.Chains() {
		d := documents[v.Of(handlerchain.Kind)[c.Name].Place]
		d.name = c.Name
		found := all.ChainProblems(c)
		if hub, ok := hooks.ByName(c.Hook.Hook); ok {
			if err := all.Several(hub); err != nil {
				found = append(found, extensionconfig.ChainProblem{Path: "spec.hook", Err: err})
			}
		}
		for _, p := range found {
			problems = append(problems, d.problemAt(p.Path, fmt.Errorf("%s: %w", p.Path, p.Err)))
		}
	}
	for _, h := range hooks.Hubs() {
		// Other files may have a chain of these handlers.
		if chains, _ := all.StandsFor(h.GroupHook()); len(chains) == 0 {
			problems = append(problems, v.severalOf(all, h)...)
		}
	}
	return problems
}

// severalOf returns a warning for each ExtensionConfig and rule with handlers of a hook of which Cluster API takes one,
// if more are offered.
func (v *Inventory) severalOf(all *extensionconfig.Assembly, h *catalog.Hook) []Problem {
	err := all.Several(h)
	if err == nil {
		return nil
	}
	var problems []Problem
	warned := map[string]bool{}
	for _, e := range all.Handlers(h.GroupHook()) {
		name := e.Registration.Name
		if warned[name] {
			continue
		}
		warned[name] = true
		p := v.ofExtension(name, err)
		if e.Registration.InProcess != nil {
			p.Place, p.Object = v.Of(hookrule.Kind)[name].Place, e.Registration.Describe()
		}
		p.Warning = true
		problems = append(problems, p)
	}
	return problems
}

// ofExtension returns a problem of an ExtensionConfig.
func (v *Inventory) ofExtension(name string, err error) Problem {
	place := v.Of(extensionconfig.Kind)[name].Place
	return Problem{Place: place, Object: fmt.Sprintf("ExtensionConfig %q", name), Err: err}
}
