// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// Set applies the ExtensionPolicies of a source to the registry, and decides the condition Accepted of each.
//
// WithProtocol, ClusterAPIVersion and Listed are safe for concurrent use. The other methods belong to one goroutine.
type Set struct {
	kinds.Judged[Policy, status.Policy]

	registry Registry
	exists   func(extensionConfig string) bool
	types    *policy.Types

	policies []Policy
	targets  map[string]Target // of those that have mistakes, by name

	resolved  atomic.Pointer[map[string]registry.Policies] // what the registry has, by ExtensionConfig
	protocols atomic.Pointer[map[string]registry.Protocol] // by ExtensionConfig, those that are not REST
}

// Registry is where a Set puts what it has.
type Registry interface {
	registry.Snapshots
	// SetAllPolicies replaces the policies for the handlers of ExtensionConfigs, by name, which need not be registered.
	SetAllPolicies(byConfig map[string]registry.Policies)
	// HooksOf returns the hooks of an ExtensionConfig's handlers by their names, and whether they are known at all; of a
	// registration without a server if that has the name. Callers must not change the map.
	HooksOf(name string) (handlers map[string]hook.GroupHook, known bool)
}

var _ kinds.Set = (*Set)(nil)

// NewSet returns a Set without policies. exists reports whether the source has an ExtensionConfig, registered or not.
// Conditions are checked against types.
func NewSet(
	r Registry, exists func(extensionConfig string) bool, types *policy.Types, logger *slog.Logger,
) *Set {
	s := &Set{registry: r, exists: exists, types: types}
	s.Init(kinds.Judging[Policy, status.Policy]{
		Kind: Kind, Word: "policy", Most: limits.StatusPolicies, In: listed, Show: s.shown, Judge: s.verdicts,
		Content: func(p *Policy) any { return p.Compiled },
		Says: func(v kinds.Verdict) (slog.Level, string) {
			if v.Accepted() {
				return slog.LevelInfo, "is accepted"
			}
			return slog.LevelWarn, "is not accepted"
		},
	}, r, logger)
	s.resolved.Store(&map[string]registry.Policies{})
	s.protocols.Store(&map[string]registry.Protocol{})
	return s
}

// WithProtocol returns x with the protocol that its policy states, unless the URL of x states one. It returns an
// error if the URL does not suit the protocol.
func (s *Set) WithProtocol(x extensionconfig.Extension) (extensionconfig.Extension, error) {
	protocol := (*s.protocols.Load())[x.Name]
	if protocol == x.ClientConfig.Protocol || x.ClientConfig.Protocol != registry.REST {
		return x, nil
	}
	x.ClientConfig.Protocol = protocol
	if err := x.ClientConfig.CheckURL(); err != nil {
		return x, fmt.Errorf("spec.clientConfig: %s: the ExtensionPolicy sets protocol %s, so the URL %w",
			x.ClientConfig.URL, protocol, err)
	}
	return x, nil
}

// ClusterAPIVersion returns the version of Cluster API objects that a handler is called with, as its policy states it
// or else its extension.
func (s *Set) ClusterAPIVersion(extensionConfig string, h registry.Handler) string {
	return (*s.resolved.Load())[extensionConfig].Override(h).ClusterAPIVersion
}

// Split splits the handlers that an extension has registered into those that its policy allows, and those that wait.
func (s *Set) Split(extensionConfig string, handlers []registry.Handler) (
	allowed, withheld []registry.Handler, by *policy.Policy,
) {
	by = (*s.resolved.Load())[extensionConfig].All
	for _, h := range handlers {
		if by.Allows(h.Hook.Hook) {
			allowed = append(allowed, h)
		} else {
			withheld = append(withheld, h)
		}
	}
	return allowed, withheld, by
}

// OnUndiscovered returns what becomes of calls to all handlers of a hook because those of x are not known; empty if
// they are.
func (s *Set) OnUndiscovered(x *extensionconfig.Extension) hook.FailurePolicy {
	if _, known := s.registry.HooksOf(x.Name); known {
		return ""
	}
	u := registry.Undiscovered{Default: x.OnUndiscovered()}
	return u.Effect((*s.resolved.Load())[x.Name].All)
}

// Use implements kinds.Set. The targets of policies need not exist yet. It returns the ExtensionConfigs whose protocol
// has changed, the version of objects that one of their handlers is called with, which hooks they may register, or what
// becomes of calls while their handlers are not known.
func (s *Set) Use(items []kinds.Item) (changed []string) {
	policies := kinds.In[Policy](items)
	objects := make(map[string]*Policy, len(policies))
	for i := range policies {
		objects[policies[i].Name] = &policies[i]
	}
	s.policies, s.targets = policies, map[string]Target{}
	for i := range items {
		if o, ok := items[i].Object.(*v1alpha1.ExtensionPolicy); ok && items[i].Mistake != "" {
			of := &o.Spec.TargetRef
			s.targets[items[i].Name] = Target{ExtensionConfig: of.Name, Handler: of.Handler}
		}
	}
	s.Put(objects, kinds.Mistakes(items))
	// A missing target makes no difference.
	resolved, _ := Resolve(policies, func(Target) error { return nil })
	previous := *s.resolved.Load()
	next := maps.Clone(resolved)
	for name := range previous {
		if _, ok := next[name]; !ok {
			next[name] = registry.Policies{}
		}
	}
	s.registry.SetAllPolicies(next)
	s.resolved.Store(&resolved)

	before, now := *s.protocols.Load(), Protocols(policies, resolved)
	s.protocols.Store(&now)
	names := map[string]bool{}
	for name := range previous {
		names[name] = true
	}
	for name := range resolved {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != now[name] || !maps.Equal(versionsIn(previous[name]), versionsIn(resolved[name])) ||
			!registersAlike(previous[name].All, resolved[name].All) {
			changed = append(changed, name)
		}
	}
	return changed
}

// registersAlike reports whether two policies, which may be nil, register the same handlers of an extension.
func registersAlike(a, b *policy.Policy) bool {
	none := &policy.Policy{}
	a, b = cmp.Or(a, none), cmp.Or(b, none)
	return slices.Equal(a.Hooks, b.Hooks) && a.OnUndiscovered == b.OnUndiscovered
}

// versionsIn returns the versions of objects in policies by handler, with "" for all handlers, or nil if no policy
// states one.
func versionsIn(p registry.Policies) map[string]string {
	versions := map[string]string{}
	stated := false
	add := func(handler string, compiled *policy.Policy) {
		if compiled != nil {
			versions[handler] = compiled.ClusterAPIVersion + "/" + compiled.ClusterAPIRelease
			stated = stated || versions[handler] != "/"
		}
	}
	add("", p.All)
	for handler, compiled := range p.Handlers {
		add(handler, compiled)
	}
	if !stated {
		return nil
	}
	return versions
}

// verdicts returns the verdict on each policy, by name: two may be in conflict.
func (s *Set) verdicts(
	in *registry.Snapshot, _ map[string]*Policy,
) map[string]kinds.Verdict {
	_, verdicts := Resolve(s.policies, s.missing)
	for i := range s.policies {
		p := &s.policies[i]
		handlers, known := s.registry.HooksOf(p.Target.ExtensionConfig)
		v := verdicts[p.Name]
		if reg := s.local(p.Target.ExtensionConfig); reg != nil && v.Accepted() {
			v = p.JudgeLocal(reg)
		}
		if known && v.Accepted() {
			v = p.JudgeLifts(v, handlers)
		}
		v = p.Judge(v, s.types, handlers)
		if v.Accepted() && p.Target.Handler == "" {
			if collisions := in.Collisions(p.Target.ExtensionConfig); len(collisions) > 0 {
				v = p.JudgeNames(collisions)
			}
		}
		verdicts[p.Name] = v
	}
	return verdicts
}

// local returns the registration without a server that is served under a name, or nil.
func (s *Set) local(name string) *registry.Registration {
	if reg, ok := s.registry.Snapshot().Registration(name); ok && reg.InProcess != nil {
		return reg
	}
	return nil
}

// missing returns an error if the target of a policy does not exist.
func (s *Set) missing(t Target) error {
	local := s.local(t.ExtensionConfig)
	if local == nil && !s.exists(t.ExtensionConfig) {
		return t.Missing()
	}
	if t.Handler == "" {
		return nil
	}
	handlers, known := s.registry.HooksOf(t.ExtensionConfig)
	_, has := handlers[t.Handler]
	switch {
	case !known:
		return fmt.Errorf("ExtensionConfig %q has not been discovered yet", t.ExtensionConfig)
	case !has && local != nil:
		return fmt.Errorf("%s has no handler %q", local.Describe(), t.Handler)
	case !has:
		return fmt.Errorf("ExtensionConfig %q has no handler %q", t.ExtensionConfig, t.Handler)
	}
	return nil
}

// shown returns what the status shows of a policy.
func (s *Set) shown(
	_ *registry.Snapshot, name string, p *Policy, v kinds.Verdict,
) status.Policy {
	of := s.targets[name]
	if p != nil {
		of = cmp.Or(of, p.Target)
	}
	target := of.ExtensionConfig
	if of.Handler != "" {
		target += "/" + of.Handler
	}
	return status.Policy{
		Name: name, Target: text.Cut(target, limits.QuotedBytes), Accepted: v.Accepted(), Reason: v.Reason,
		Message: text.Cut(v.Message, limits.PolicyMessageBytes),
	}
}
