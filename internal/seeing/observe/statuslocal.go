// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// Rule returns the status of the gateway with one of the listed HookRules and all that is known of it, and the Clusters
// that wait for it. It reports whether there is a HookRule of that name.
func (r *Reporter) Rule(name string) (*status.Gateway, bool) {
	g, rules := r.local(name, r.Rules)
	g.Rules = rules
	return g, rules != nil
}

// Job is Rule for HookJobs.
func (r *Reporter) Job(name string) (*status.Gateway, bool) {
	g, jobs := r.local(name, r.Jobs)
	g.Jobs = jobs
	return g, jobs != nil
}

// local returns the status of the gateway with the Clusters that wait for what has a name among those that list lists,
// and that alone; nil if there is none.
func (r *Reporter) local(name string, list func() ([]status.Local, int)) (*status.Gateway, []status.Local) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g := r.gateway(now, snapshot)
	all, _ := r.locals(list, now, snapshot, chainsOf(snapshot))
	i := slices.IndexFunc(all, func(l status.Local) bool { return l.Name == name })
	if i < 0 {
		return g, nil
	}
	found := all[i]
	if found.Handler != nil {
		of := r.Observer.handlers.Of(found.Handler.Name, now)
		found.Handler.Calls.Points = points(&of.Calls)
		found.Failures = r.failuresOf(name)
	}
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool {
		return found.Handler == nil || h.Handler != found.Handler.Name
	})
	return g, []status.Local{found}
}

// locals returns what list lists with their handlers, and how many more there are. list may be nil.
func (r *Reporter) locals(
	list func() ([]status.Local, int), now time.Time, snapshot *registry.Snapshot, inChains map[string][]string,
) (all []status.Local, missed int) {
	if list == nil {
		return nil, 0
	}
	listed, missed := list()
	all = slices.Clone(listed)
	for i := range all {
		local := &all[i]
		registration, ok := snapshot.Registration(local.Name)
		if !ok || registration.Local == nil {
			continue // what else has its name is served
		}
		if s := registration.NamespaceSelector; s != nil && !s.Empty() {
			local.Selector = s.String()
		}
		for _, e := range snapshot.HandlersOf(local.Name) {
			if e.Handler.Everything {
				continue // which frees places
			}
			of := r.hooked(now, e)
			of.OfferedAs, of.Collision = r.offeredAs(snapshot, e)
			of.Chains = inChains[e.Name]
			of.Lost = r.Observer.losses.Of(local.Name)[e.Handler.Name]
			local.Handler = &of.Handler
		}
	}
	return all, missed
}

// judgeLocal returns the state of a handler that has no server, which is ready before its first call.
func judgeLocal(e *handlerEvidence) verdict {
	v := judgeHandler(e, activity.Server{})
	if v.state == status.Up || v.state == status.Unknown {
		v.state = status.Ready
	}
	return v
}

// noLocal says that nothing of a kind that list lists has a name, and which name is nearly the same.
func noLocal(kind, name string, list func() ([]status.Local, int)) string {
	var names []string
	if list != nil {
		all, _ := list()
		for i := range all {
			names = append(names, all[i].Name)
		}
	}
	return noSuch(kind, name, names)
}

// listedElsewhere says which command shows what has a name, if it is no extension.
func (r *Reporter) listedElsewhere(name string) string {
	if _, ok := r.Chain(name); ok {
		return fmt.Sprintf("%q is a HandlerChain: hookgate describe chain %s", name, name)
	}
	if _, ok := r.Rule(name); ok {
		return fmt.Sprintf("%q is a HookRule: hookgate describe rule %s", name, name)
	}
	if _, ok := r.Job(name); ok {
		return fmt.Sprintf("%q is a HookJob: hookgate describe job %s", name, name)
	}
	if _, ok := r.Rollout(name); ok {
		return fmt.Sprintf("%q is an ExtensionRollout: hookgate describe rollout %s", name, name)
	}
	return ""
}
