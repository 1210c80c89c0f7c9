// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/registry"
)

// locatedChain is a chain with its location.
type locatedChain struct {
	registry.Chain
	location preflight.Location
}

// local returns a HookRule or HookJob with its handlers.
func local(r *registry.Registration, at preflight.Location) preflight.Extension {
	x := preflight.Extension{Name: r.Name, InProcess: r.InProcess.Kind(), Location: at}
	for _, h := range r.Handlers {
		x.Handlers = append(x.Handlers, preflight.Handler{
			Name: h.Name, Hook: h.Hook, States: h.ClusterAPIVersion, Location: at,
		})
	}
	return x
}

// decideChains adds chains to v, with what keeps them from being called now, and the hooks of which several handlers
// are offered to Cluster API though it takes one.
func decideChains(
	v *preflight.Inventory, policies []locatedPolicy, rules []registry.Registration, located []locatedChain,
	hooks *catalog.Catalog,
) {
	chains := make([]registry.Chain, len(located))
	locations := map[string]preflight.Location{}
	for i := range located {
		chains[i] = located[i].Chain
		locations[chains[i].Name] = located[i].location
	}
	resolved, _ := extensionpolicy.Resolve(withoutLocations(policies),
		func(t extensionpolicy.Target) error { return missing(v, t) })
	var configs []extensionconfig.Assembled
	direct := map[string][]string{} // what Cluster API calls itself, by the name of the hook
	for i := range v.Extensions {
		x := &v.Extensions[i]
		switch {
		case x.InProcess != "", preflight.IsGateway(x, hooks): // a gateway's handlers are those of others
		case x.Direct:
			for j := range x.Handlers {
				h := &x.Handlers[j]
				direct[h.Hook.Hook] = append(direct[h.Hook.Hook], h.Name+"."+x.Name)
			}
		default:
			configs = append(configs, assembled(x))
		}
	}
	all, _ := extensionconfig.Assemble(configs, rules, resolved, chains, hooks) // what is refused there was found before
	for _, c := range all.Chains() {
		judged := preflight.Chain{Name: c.Name, Location: locations[c.Name], Hook: c.Hook}
		for i := range c.Steps {
			if !c.Steps[i].Optional {
				judged.Steps = append(judged.Steps, c.Steps[i].Handler)
			}
		}
		var broken []string
		for _, p := range all.ChainProblems(c) {
			broken = append(broken, fmt.Sprintf("%s: %v", p.Path, p.Err))
		}
		judged.Broken = text.Join(broken, "; ", limits.Problems)
		v.Chains = append(v.Chains, judged)
	}
	for _, h := range hooks.Hubs() {
		if err := all.Several(h, direct[h.Hook]...); err != nil {
			v.Several = append(v.Several, preflight.SeveralHandlers{Hook: h.GroupHook(), Problem: err.Error()})
		}
	}
}

// assembled returns what a gateway would register of an extension.
func assembled(x *preflight.Extension) extensionconfig.Assembled {
	config := extensionconfig.Assembled{Known: x.Undiscovered == ""}
	config.Name, config.ClientConfig.URL = x.Name, "https://"+strings.ToLower(x.Name)
	for i := range x.Handlers {
		h := &x.Handlers[i]
		if h.Useless != "" {
			continue
		}
		failurePolicy := hook.Fail
		if h.Ignores {
			failurePolicy = hook.Ignore
		}
		config.Handlers = append(config.Handlers, registry.Handler{
			Name: h.Name, Hook: h.Hook, Timeout: limits.DefaultTimeout, FailurePolicy: failurePolicy,
		})
	}
	return config
}
