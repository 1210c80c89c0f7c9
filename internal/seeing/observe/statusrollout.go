// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// Rollout returns the status of the gateway with one of the listed ExtensionRollouts, all that is known of its
// Clusters, and the Clusters that wait for its members. It reports whether there is an ExtensionRollout of that name.
func (r *Reporter) Rollout(name string) (*status.Gateway, bool) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g, all := r.gateway(now, snapshot), r.listedRollouts()
	i := slices.IndexFunc(all, func(of status.Rollout) bool { return of.Name == name })
	if i < 0 {
		return g, false
	}
	all[i].Handlers = r.rolloutHandlers(now, snapshot, name)
	g.Rollouts = all[i : i+1]
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool {
		e, ok := snapshot.Registered(h.Handler)
		of, member := snapshot.MemberOf(registrationOf(e, ok))
		return !member || of.Name != name
	})
	return g, true
}

// registrationOf returns the name of the ExtensionConfig of a handler that is registered, or nothing.
func registrationOf(e *registry.Entry, registered bool) string {
	if !registered {
		return ""
	}
	return e.Registration.Name
}

// listedRollouts returns all that the source says of its ExtensionRollouts.
func (r *Reporter) listedRollouts() []status.Rollout {
	if r.Rollouts == nil {
		return nil
	}
	return r.Rollouts()
}

// rollouts returns the ExtensionRollouts with the first Clusters of each, and how many more there are.
func (r *Reporter) rollouts(now time.Time, snapshot *registry.Snapshot) (all []status.Rollout, missed int) {
	all = r.listedRollouts()
	missed = max(0, len(all)-limits.StatusRollouts)
	all = all[:len(all)-missed]
	for i := range all {
		of := &all[i]
		of.Handlers = r.rolloutHandlers(now, snapshot, of.Name)
		if more := len(of.Clusters) - limits.StatusRolloutExamples; more > 0 {
			of.Clusters, of.MissedClusters = of.Clusters[:limits.StatusRolloutExamples], of.MissedClusters+more
		}
		for j := range of.Clusters {
			shorten(&of.Clusters[j])
		}
		if of.Variables != nil {
			shorten(of.Variables)
		}
	}
	return all, missed
}

// shorten leaves one difference of a Cluster.
func shorten(c *status.RolloutCluster) {
	if more := len(c.Differences) - 1; more > 0 {
		c.Differences, c.OmittedDifferences = c.Differences[:1], c.OmittedDifferences+more
	}
}

// rolloutHandlers returns the handlers that callers see of an ExtensionRollout.
func (r *Reporter) rolloutHandlers(now time.Time, snapshot *registry.Snapshot, name string) (all []status.Handler) {
	inChains := chainsOf(snapshot)
	for _, e := range snapshot.Offers(name) {
		h := r.hooked(now, e).Handler
		h.OfferedAs, h.Collision = r.offeredAs(snapshot, e)
		h.Chains = inChains[e.Name]
		all = append(all, h)
	}
	return all
}

// hookedMembers describes the handler of an ExtensionRollout: with the calls of both members, and the worse state. A
// candidate that is down is one that fails: it answers for some Clusters only.
func (r *Reporter) hookedMembers(now time.Time, e *registry.Entry) status.HookedHandler {
	var of activity.Handler
	h := status.HookedHandler{Handler: r.handler(e, &of, nil), Extension: e.Registration.Name}
	h.State = ""
	for _, member := range []*registry.Entry{e.Variants.StableEntry, e.Variants.CandidateEntry} {
		if member == nil {
			continue
		}
		of := r.Observer.handlers.Of(member.Name, now)
		if at := timeOf(of.LastSuccess); at != nil && (h.LastSuccess == nil || at.After(*h.LastSuccess)) {
			h.LastSuccess = at
		}
		calls := callsOf(&of.Calls)
		h.Calls.Total += calls.Total
		h.Calls.Failures += calls.Failures
		h.Calls.NearTimeout += calls.NearTimeout
		h.Calls.P50, h.Calls.P99 = max(h.Calls.P50, calls.P50), max(h.Calls.P99, calls.P99)
		m := r.hooked(now, member)
		if h.State != "" && m.State == status.Down {
			m.State, m.Error = status.Failing, cmp.Or(m.Error, member.Registration.Name+" is down") // for some Clusters
		}
		if h.State == "" || m.State.Worse(h.State) {
			h.State, h.Error = m.State, m.Error
		}
	}
	return h
}

// memberOf says what an ExtensionConfig is to an ExtensionRollout; nil for nothing.
func memberOf(s *registry.Snapshot, extensionConfig string) *status.RolloutMember {
	of, ok := s.MemberOf(extensionConfig)
	if !ok {
		return nil
	}
	m := &status.RolloutMember{Name: of.Name}
	switch extensionConfig {
	case of.Stable:
		m.As = "stable"
	case of.Candidate:
		m.As = "candidate"
	}
	return m
}

// noRollout says that no ExtensionRollout has a name, and which name is nearly the same.
func (r *Reporter) noRollout(name string) string {
	var names []string
	for _, of := range r.listedRollouts() {
		names = append(names, of.Name)
	}
	return noSuch("ExtensionRollout", name, names)
}
