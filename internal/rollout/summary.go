// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/internal/text"
)

// Fill adds to the status of an ExtensionRollout what is known of its Clusters.
func (e *Engine) Fill(shown *status.Rollout) {
	s := e.stateOf(shown.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.current
	if r == nil {
		return
	}
	shown.Paused = r.spec.Paused
	if s.aborted != nil && s.aborted.Spec.Candidate == r.candidate {
		shown.Aborted = s.aborted.Spec.Message
	}
	for _, c := range s.clusters {
		failure := c.failure()
		if failure != "" {
			shown.Failing++
		}
		if c.record == nil || c.record.Spec.Candidate != r.candidate {
			continue
		}
		listed := Shown(c.record)
		listed.Failure = failure
		switch {
		case c.record.Spec.Cluster == nil:
			if c.record.Spec.State == v1alpha1.RolloutStateDifferent {
				shown.Variables = &listed
			}
			continue
		case c.record.Spec.State == v1alpha1.RolloutStateEqual:
			shown.Equal++
			continue
		case c.record.Spec.State == v1alpha1.RolloutStateDifferent:
			shown.Different++
		default:
			shown.Moved++
		}
		shown.Clusters = append(shown.Clusters, listed)
	}
	slices.SortFunc(shown.Clusters, func(a, b status.RolloutCluster) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster))
	})
	if more := len(shown.Clusters) - limits.StatusRolloutClusters; more > 0 {
		shown.Clusters, shown.MissedClusters = shown.Clusters[:limits.StatusRolloutClusters], more
	}
}

// failure says why the last call of the candidate about a Cluster has failed, or nothing.
func (c *cluster) failure() string {
	worst := ""
	for name, h := range c.handlers {
		if h.compared != nil && h.compared.Err != nil {
			if says := name + ": " + h.compared.Err.Error(); worst == "" || says < worst {
				worst = says
			}
		}
	}
	return text.Cut(worst, limits.PolicyMessageBytes)
}

// Shown returns a record in the form of the status.
func Shown(r *v1alpha1.ExtensionRolloutRecord) status.RolloutCluster {
	of := clusterOf(r)
	listed := status.RolloutCluster{
		Namespace: of.Namespace, Cluster: of.Name, State: string(r.Spec.State), Since: r.Spec.Since.Time,
		Message: r.Spec.Message,
	}
	if r.Spec.OmittedDifferences != nil {
		listed.OmittedDifferences = int(*r.Spec.OmittedDifferences)
	}
	for _, d := range r.Spec.Differences {
		listed.Differences = append(listed.Differences, status.RolloutDifference{
			Handler: d.Handler, Object: d.Object, Path: d.Path, Stable: d.Stable, Candidate: d.Candidate,
			Machines: d.Machines,
		})
	}
	return listed
}
