// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// Cluster says which handlers the hooks of a Cluster go to, as far as its name and the labels of its namespace tell,
// and which of them it waits for. Hooks without a handler are left out. It reports whether anything is known of the
// Cluster: a call about it, a hold, or that the API server has it. What it returns is so for any other Cluster, too.
func (r *Reporter) Cluster(namespace, name string) (*status.Cluster, bool) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	c := &status.Cluster{Now: now, Namespace: namespace, Name: name, Holds: []status.Hold{}, Hooks: []status.Hook{}}
	for _, h := range r.gateway(now, snapshot).Holds {
		if h.Namespace == namespace && h.Cluster == name {
			c.Holds = append(c.Holds, h)
		}
	}
	c.LastCall = timeOf(r.Observer.clusters.Of(namespace, name))
	known := c.LastCall != nil || len(c.Holds) > 0 || r.HasCluster != nil && r.HasCluster(namespace, name)
	of, _ := r.Namespaces.NamespaceLabels(namespace)
	all := routes{r, now, snapshot, labels.Set(of), chainsOf(snapshot)}
	for _, hub := range r.Catalog.Hubs() {
		if h := all.of(hub); len(h.Handlers) > 0 {
			c.Hooks = append(c.Hooks, h)
		}
	}
	return c, known
}

// Clusters returns the Clusters whose namespace/name has a part, at most so many, and counts the others: those that
// wait, by name, and then the others, the one with the last call first.
func (r *Reporter) Clusters(part string, most int) (found []status.SeenCluster, more int) {
	type key struct{ namespace, name string }
	waiting := map[key]int{}
	holds, _ := r.holds(time.Now(), r.Registry.Snapshot())
	for i := range holds {
		waiting[key{holds[i].Namespace, holds[i].Cluster}]++
	}
	add := func(c status.SeenCluster) {
		switch {
		case !strings.Contains(c.Namespace+"/"+c.Name, part):
		case len(found) == most:
			more++
		default:
			found = append(found, c)
		}
	}
	byName := func(a, b key) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	}
	keys := make([]key, 0, len(waiting))
	for k := range waiting {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, byName)
	for _, k := range keys {
		last := timeOf(r.Observer.clusters.Of(k.namespace, k.name))
		add(status.SeenCluster{Namespace: k.namespace, Name: k.name, LastCall: last, Holds: waiting[k]})
	}
	for _, seen := range r.Observer.clusters.List(limits.SeenClusters) {
		if waiting[key{seen.Namespace, seen.Name}] == 0 {
			add(status.SeenCluster{Namespace: seen.Namespace, Name: seen.Name, LastCall: timeOf(seen.Last)})
		}
	}
	return found, more
}

// maxMeant is how many Clusters a name is compared with that may be misspelt.
const maxMeant = 1000

// noCluster says that nothing is known of a Cluster, and what to do.
func (r *Reporter) noCluster(namespace, name string) string {
	called := text.Cut(namespace+"/"+name, limits.QuotedBytes)
	var names []string
	for _, seen := range r.Observer.clusters.List(maxMeant) {
		names = append(names, seen.Namespace+"/"+seen.Name)
	}
	if meant := text.Nearest(called, names); meant != "" {
		return fmt.Sprintf("no call about a Cluster %q has reached this process: did you mean %q?", called, meant)
	}
	return fmt.Sprintf("no call about a Cluster %q has reached this process since it started: look for the name with "+
		"kubectl get clusters, or ask the other replicas", called)
}

// routes finds the handlers of hooks for the Clusters of a namespace.
type routes struct {
	*Reporter
	now       time.Time
	snapshot  *registry.Snapshot
	namespace labels.Set
	inChains  map[string][]string
}

// of returns a hook with its handlers. A chain is one of them, and of hooks that all handlers answer, or of which
// Cluster API takes one in all, in place of its steps.
func (r *routes) of(hub *catalog.Hook) status.Hook {
	h := status.Hook{Name: hub.Hook, Called: status.CalledOne, Handlers: []status.HookedHandler{}}
	chains, steps := r.snapshot.StandsFor(hub.GroupHook())
	for _, c := range chains {
		if chain := r.chain(hub, c); len(chain.Steps) > 0 {
			h.Handlers = append(h.Handlers, chain)
		}
	}
	for _, e := range r.snapshot.Handlers(hub.GroupHook()) {
		if r.selects(e) && (!steps[e.Name] || !hub.Mergeable && !hub.OneHandler) {
			h.Handlers = append(h.Handlers, r.handler(e))
		}
	}
	slices.SortStableFunc(h.Handlers, func(a, b status.HookedHandler) int {
		return cmp.Or(byOrder(a, b), strings.Compare(a.Name, b.Name))
	})
	if hub.Mergeable {
		h.Called = status.CalledAll
		takeTurns(h.Handlers)
	}
	return h
}

// takeTurns sets the turns of handlers that all are called: those with an order one after the other, and then all
// others at the same time.
func takeTurns(handlers []status.HookedHandler) {
	turn := 1
	for i := range handlers {
		if handlers[i].Turn = turn; handlers[i].Order != nil {
			turn++
		}
	}
}

// selects reports whether the namespaceSelector of a handler's ExtensionConfig matches.
func (r *routes) selects(e *registry.Entry) bool {
	s := e.Registration.NamespaceSelector
	return s == nil || s.Matches(r.namespace)
}

// handler describes a handler.
func (r *routes) handler(e *registry.Entry) status.HookedHandler {
	of := r.hooked(r.now, e)
	of.OfferedAs, of.Collision = r.offeredAs(r.snapshot, e)
	of.Chains = r.inChains[e.Name]
	return of
}

// chain describes a chain and those of its steps that are for the namespace. Its state is the worst of theirs.
func (r *routes) chain(hub *catalog.Hook, c *registry.Chain) status.HookedHandler {
	calls := r.Observer.handlers.Of(c.Name, r.now)
	chain := status.HookedHandler{Handler: status.Handler{
		Name: c.Name, Kind: registry.ChainKind, OfferedAs: r.merged(r.snapshot, c.Hook, c.Name), Hook: hub.Hook,
		APIVersion: hub.APIVersion(), Timeout: status.InSeconds(limits.Timeout), FailurePolicy: "Fail", State: status.Up,
		LastSuccess: timeOf(calls.LastSuccess), Calls: callsOf(&calls.Calls),
	}}
	turn := 0
	for i := range c.Steps {
		step := status.HookedHandler{Handler: status.Handler{
			Name: c.Steps[i].Handler, Hook: hub.Hook, APIVersion: hub.APIVersion(), State: status.Unknown,
		}}
		switch e, err := r.snapshot.Step(c, i); {
		case err != nil:
			step.State, step.Error = status.Failing, err.Error()
		case e == nil || !r.selects(e):
			continue // it is optional, or for other namespaces
		default:
			step = r.handler(e)
			step.Order = nil // which chains do not follow
		}
		if turn == 0 || !hub.InParallel() {
			turn++
		}
		step.Turn, step.Chains = turn, nil
		if step.State.Worse(chain.State) {
			chain.State, chain.Error = step.State, step.Error
		}
		chain.Steps = append(chain.Steps, step)
	}
	return chain
}

// hooked describes a handler, and its state.
func (r *Reporter) hooked(now time.Time, e *registry.Entry) status.HookedHandler {
	if e.Variants != nil {
		return r.hookedMembers(now, e)
	}
	of := r.Observer.handlers.Of(e.Name, now)
	h := r.handler(e, &of, nil)
	x := r.evidence(e.Registration.Name, activity.Discovery{})
	x.handlers = []handlerEvidence{r.handlerEvidence(e, of.Seen)}
	v := judgeLocal(&x.handlers[0])
	if e.Registration.InProcess == nil {
		_, verdicts := judge(&x)
		v = verdicts[0]
	}
	h.State, h.Error = v.state, v.reason
	return status.HookedHandler{Handler: h, Extension: e.Registration.Name}
}

// byOrder puts handlers with an order before those without, as they are called.
func byOrder(a, b status.HookedHandler) int {
	switch {
	case a.Order == nil && b.Order == nil:
		return 0
	case a.Order == nil:
		return 1
	case b.Order == nil:
		return -1
	}
	return cmp.Compare(*a.Order, *b.Order)
}
