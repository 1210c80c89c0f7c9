// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"fmt"
	"slices"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/registry"
)

// fromStatus returns the handlers in the status of an ExtensionConfig, or an error if a gateway could not use them. at
// returns the location of each.
func fromStatus(
	config *runtimev1.ExtensionConfig, hooks *catalog.Catalog, at func(i int) preflight.Location,
) ([]preflight.Handler, error) {
	known, skipped, errs := extensionconfig.LastKnownHandlers(config, hooks)
	if len(errs) > 0 {
		return nil, problems.Join(errs)
	}
	states := map[string]string{}
	for _, h := range known {
		states[h.Name] = h.ClusterAPIVersion
	}
	useless := map[string]string{}
	for _, s := range skipped {
		useless[s.Name] = s.Reason
	}
	handlers := make([]preflight.Handler, 0, len(config.Status.Handlers))
	for i := range config.Status.Handlers {
		status := &config.Status.Handlers[i]
		name := status.Name[:len(status.Name)-len(config.Name)-1] // which LastKnownHandlers has checked
		h := preflight.Handler{Name: name, Location: at(i), States: states[name]}
		gvh, err := hook.Parse(status.RequestHook.APIVersion, status.RequestHook.Hook)
		if err != nil {
			h.Useless = cmp.Or(useless[status.Name], err.Error())
		}
		h.Hook = gvh
		h.Ignores = status.FailurePolicy == runtimev1.FailurePolicyIgnore
		handlers = append(handlers, h)
	}
	return handlers, nil
}

// fromDiscovery returns the handlers that an extension announces.
func fromDiscovery(found extension.Discovered, at preflight.Location) []preflight.Handler {
	var handlers []preflight.Handler
	for _, h := range found.Handlers {
		handlers = append(handlers, preflight.Handler{
			Name: h.Name, Hook: h.Hook, States: h.ClusterAPIVersion, Ignores: h.FailurePolicy == hook.Ignore, Location: at,
		})
	}
	for _, s := range found.Skipped {
		handlers = append(handlers, preflight.Handler{Name: s.Name, Useless: s.Reason, Location: at})
	}
	return handlers
}

// locatedPolicy is a policy with its location.
type locatedPolicy struct {
	extensionpolicy.Policy
	location preflight.Location
}

// decide sets the policies in effect for the handlers of v, and lists the policies that state a version without effect.
func decide(v *preflight.Inventory, policies []locatedPolicy) {
	resolved, verdicts := extensionpolicy.Resolve(withoutLocations(policies),
		func(t extensionpolicy.Target) error { return missing(v, t) })
	located := map[string]preflight.Location{}
	for _, p := range policies {
		located[p.Name] = p.location
		if verdict := verdicts[p.Name]; !verdict.Accepted() &&
			p.Compiled.ClusterAPIVersion+p.Compiled.ClusterAPIRelease != "" {
			v.Ignored = append(v.Ignored, preflight.IgnoredPolicy{
				Name: p.Name, ExtensionConfig: p.Target.ExtensionConfig, Location: p.location, Reason: verdict.Message,
			})
		}
	}
	for i := range v.Extensions {
		x := &v.Extensions[i]
		if x.Direct {
			continue
		}
		of := resolved[x.Name]
		for j := range x.Handlers {
			h := &x.Handlers[j]
			// Who states the version of objects states it by name, or by the release that sent it.
			stated := func(p *registry.Policy) string {
				return cmp.Or(p.ClusterAPIVersion, catalog.ObjectVersion(h.Hook.Hook, p.ClusterAPIRelease))
			}
			if whole := of.Of(h.Name); whole != nil {
				h.Release = whole.ClusterAPIRelease
			}
			if own := of.Handlers[h.Name]; own != nil {
				h.Policy = &preflight.Policy{Name: own.Name, Location: located[own.Name], States: stated(own)}
			}
			// What the policy of the handler does not state comes from the one for all.
			if all := of.All; all != nil && (h.Policy == nil || h.Policy.States == "" && stated(all) != "") {
				h.Policy = &preflight.Policy{
					Name: all.Name, Location: located[all.Name], ForAll: true, States: stated(all), Own: h.Policy,
				}
			}
		}
	}
}

// missing returns an error if the target of a policy does not exist. Unknown handlers are taken to exist.
func missing(v *preflight.Inventory, t extensionpolicy.Target) error {
	named := func(x preflight.Extension) bool { return x.Name == t.ExtensionConfig }
	i := slices.IndexFunc(v.Extensions, func(x preflight.Extension) bool { return named(x) && !x.Direct })
	switch {
	case i < 0 && slices.ContainsFunc(v.Extensions, named):
		return fmt.Errorf("Cluster API calls the extension of ExtensionConfig %q directly, without the gateway",
			t.ExtensionConfig)
	case i < 0:
		return t.Missing()
	case t.Handler == "", v.Extensions[i].Undiscovered != "":
		return nil
	case !slices.ContainsFunc(v.Extensions[i].Handlers, func(h preflight.Handler) bool { return h.Name == t.Handler }):
		return fmt.Errorf("ExtensionConfig %q has no handler %q", t.ExtensionConfig, t.Handler)
	}
	return nil
}

// protocols returns the protocols of extensions, by ExtensionConfig, where policies set one other than REST.
func protocols(policies []locatedPolicy) map[string]registry.Protocol {
	list := withoutLocations(policies)
	resolved, _ := extensionpolicy.Resolve(list, func(extensionpolicy.Target) error { return nil })
	return extensionpolicy.Protocols(list, resolved)
}

// withoutLocations returns the policies alone.
func withoutLocations(policies []locatedPolicy) []extensionpolicy.Policy {
	list := make([]extensionpolicy.Policy, len(policies))
	for i, p := range policies {
		list[i] = p.Policy
	}
	return list
}

// invalid returns a policy that has a mistake, if it states a version.
func invalid(p *v1alpha1.ExtensionPolicy, reason string) (preflight.IgnoredPolicy, bool) {
	return preflight.IgnoredPolicy{Name: p.Name, ExtensionConfig: p.Spec.TargetRef.Name, Reason: reason},
		string(p.Spec.ClusterAPIVersion)+p.Spec.ClusterAPIRelease != ""
}
