// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// ofRollout reports whether a handler is that of a member of a rollout.
func ofRollout(snapshot *registry.Snapshot, handler, rollout string) bool {
	e, ok := snapshot.Registered(handler)
	if !ok {
		return false
	}
	of, member := snapshot.MemberOf(e.Registration.Name)
	return member && of.Name == rollout
}

// firstRollouts returns the first ExtensionRollouts, with the first Clusters of each, and how many more there are.
func firstRollouts(all []status.Rollout) (first []status.Rollout, missed int) {
	missed = max(0, len(all)-limits.StatusRollouts)
	first = all[:len(all)-missed]
	for i := range first {
		of := &first[i]
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
	return first, missed
}

// shorten leaves one difference of a Cluster.
func shorten(c *status.RolloutCluster) {
	if more := len(c.Differences) - 1; more > 0 {
		c.Differences, c.OmittedDifferences = c.Differences[:1], c.OmittedDifferences+more
	}
}

// rolloutHandlers returns the handlers that callers see of an ExtensionRollout.
func (r *Reporter) rolloutHandlers(
	now time.Time, snapshot *registry.Snapshot, inChains map[string][]string, name string,
) (all []status.Handler) {
	for _, e := range snapshot.Offers(name) {
		h := r.hooked(now, e).Handler
		h.OfferedAs, h.Collision = r.offeredAs(snapshot, e)
		h.Chains = inChains[e.Name]
		all = append(all, h)
	}
	return all
}

// hookedMembers describes the handler of an ExtensionRollout: with the calls of both members, and the worse state. A
// candidate that is down is one that fails: it answers for some Clusters only. A member that has not been called says
// nothing if the other has.
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
		if h.State == "" || h.State == status.Unknown || m.State != status.Unknown && m.State.Worse(h.State) {
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
