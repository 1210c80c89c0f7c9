// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/registry"
)

// Cluster says which handlers the hooks of a Cluster go to, as far as its name and the labels of its namespace tell,
// and which of them it waits for. It need not exist. Hooks without a handler are left out.
func (r *Reporter) Cluster(namespace, name string) *status.Cluster {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	c := &status.Cluster{Namespace: namespace, Name: name, Holds: []status.Hold{}, Hooks: []status.Hook{}}
	for _, h := range r.gateway(now, snapshot).Holds {
		if h.Namespace == namespace && h.Cluster == name {
			c.Holds = append(c.Holds, h)
		}
	}
	known, _ := r.Namespaces.NamespaceLabels(namespace)
	labelsOf, inChains := labels.Set(known), chainsOf(snapshot)
	for _, hub := range r.Catalog.Hubs() {
		var handlers []status.HookedHandler
		for _, e := range snapshot.Handlers(hub.GroupHook()) {
			if s := e.Registration.NamespaceSelector; s == nil || s.Matches(labelsOf) {
				of := r.hooked(now, e)
				of.Chains = inChains[e.Name]
				handlers = append(handlers, of)
			}
		}
		if len(handlers) > 0 {
			slices.SortStableFunc(handlers, byOrder)
			c.Hooks = append(c.Hooks, status.Hook{Name: hub.Hook, Handlers: handlers})
		}
	}
	return c
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
	if e.Registration.Local == nil {
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
	return int(min(max(int64(*a.Order)-int64(*b.Order), -1), 1))
}
