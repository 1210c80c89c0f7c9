// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// HoldsOf returns the holds of all replicas of a gateway, those first that are oldest, and how many there was no room
// for. Of several holds of the same, the newest answer counts; one that another replica has let go since is left out,
// for which the replicas were asked with ReleasedQuery.
func HoldsOf(replicas []*Gateway) (holds []Hold, missed uint64) {
	released := map[Release]time.Time{} // by what was released, without its time
	for _, g := range replicas {
		for _, r := range g.Released {
			at := r.At
			r.At = time.Time{}
			if at.After(released[r]) {
				released[r] = at
			}
		}
	}
	newest := map[Release]Hold{}
	for _, g := range replicas {
		missed += g.MissedHolds
		for i := range g.Holds {
			h := g.Holds[i]
			of := Release{Namespace: h.Namespace, Cluster: h.Cluster, Hook: h.Hook, Handler: h.Handler, Object: h.Object}
			if released[of].After(h.Last) {
				continue
			}
			if other, ok := newest[of]; ok {
				since := h.Since
				if other.Since.Before(since) {
					since = other.Since
				}
				if other.Last.After(h.Last) {
					h = other
				}
				h.Since = since
			}
			newest[of] = h
		}
	}
	for _, h := range newest {
		holds = append(holds, h)
	}
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Hook, b.Hook), strings.Compare(a.Handler, b.Handler),
			strings.Compare(a.Object, b.Object))
	})
	return holds, missed
}
