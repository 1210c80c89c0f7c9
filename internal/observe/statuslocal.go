// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/registry"
)

// Rule returns the status of the gateway with one of the listed HookRules and all that is known of it, and the Clusters
// that wait for it. It reports whether there is a HookRule of that name.
func (r *Reporter) Rule(name string) (*status.Gateway, bool) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g := r.gateway(now, snapshot)
	rules, _ := r.rules(now, snapshot, chainsOf(snapshot))
	i := slices.IndexFunc(rules, func(l status.Local) bool { return l.Name == name })
	if i < 0 {
		return g, false
	}
	rule := rules[i]
	if rule.Handler != nil {
		of := r.Observer.handlers.Of(rule.Handler.Name, now)
		rule.Handler.Calls.Points = points(&of.Calls)
		rule.Failures = r.failuresOf(name)
	}
	g.Rules = []status.Local{rule}
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool {
		return rule.Handler == nil || h.Handler != rule.Handler.Name
	})
	return g, true
}

// rules returns the listed HookRules with their handlers, and how many more there are.
func (r *Reporter) rules(
	now time.Time, snapshot *registry.Snapshot, inChains map[string][]string,
) (rules []status.Local, missed int) {
	if r.Rules == nil {
		return nil, 0
	}
	listed, missed := r.Rules()
	rules = slices.Clone(listed)
	for i := range rules {
		rule := &rules[i]
		registration, ok := snapshot.Registration(rule.Name)
		if !ok || registration.Local == nil {
			continue // what else has its name is served
		}
		if s := registration.NamespaceSelector; s != nil && !s.Empty() {
			rule.Selector = s.String()
		}
		for _, e := range snapshot.HandlersOf(rule.Name) {
			if e.Handler.Everything {
				continue // which frees places
			}
			of := r.hooked(now, e)
			of.OfferedAs, of.Collision = r.offeredAs(snapshot, e)
			of.Chains = inChains[e.Name]
			of.Lost = r.Observer.losses.Of(rule.Name)[e.Handler.Name]
			rule.Handler = &of.Handler
		}
	}
	return rules, missed
}

// judgeLocal returns the state of a handler that has no server, which is ready before its first call.
func judgeLocal(e *handlerEvidence) verdict {
	v := judgeHandler(e, activity.Server{})
	if v.state == status.Up || v.state == status.Unknown {
		v.state = status.Ready
	}
	return v
}

// noRule says that no HookRule has a name, and which name is nearly the same.
func (r *Reporter) noRule(name string) string {
	var names []string
	if r.Rules != nil {
		rules, _ := r.Rules()
		for i := range rules {
			names = append(names, rules[i].Name)
		}
	}
	return noSuch("HookRule", name, names)
}

// listedElsewhere says which command shows what has a name, if it is no extension.
func (r *Reporter) listedElsewhere(name string) string {
	if _, ok := r.Chain(name); ok {
		return fmt.Sprintf("%q is a HandlerChain: hookgate describe chain %s", name, name)
	}
	if _, ok := r.Rule(name); ok {
		return fmt.Sprintf("%q is a HookRule: hookgate describe rule %s", name, name)
	}
	return ""
}
