// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
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
	if aborted := s.abortedFor(r.candidate); aborted != nil {
		shown.Aborted = aborted.Spec.Message
	}
	var listed []*cluster
	for _, c := range s.clusters {
		failure := c.failure()
		if failure != "" {
			shown.Failing++
		}
		if c.record == nil || c.record.Spec.Candidate != r.candidate {
			continue
		}
		switch {
		case c.record.Spec.Cluster == nil:
			if c.record.Spec.State == v1alpha1.RolloutStateDifferent {
				variables := c.shown()
				shown.Variables = &variables
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
		listed = append(listed, c)
	}
	slices.SortFunc(listed, func(a, b *cluster) int {
		x, y := a.record.Spec, b.record.Spec
		return cmp.Or(cmp.Compare(x.State, y.State), cmp.Compare(x.Cluster.Namespace, y.Cluster.Namespace),
			cmp.Compare(x.Cluster.Name, y.Cluster.Name))
	})
	shown.MissedClusters = max(len(listed)-limits.StatusRolloutClusters, 0)
	for _, c := range listed[:len(listed)-shown.MissedClusters] {
		shown.Clusters = append(shown.Clusters, c.shown())
	}
}

// shown returns the Cluster as the status shows it.
func (c *cluster) shown() status.RolloutCluster {
	shown := Shown(c.record)
	shown.Failure = c.failure()
	return shown
}

// Aborted says why no more Clusters of an ExtensionRollout move, though it is not paused; nothing if they do.
func (e *Engine) Aborted(rollout string) string {
	s := e.stateOf(rollout)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return ""
	}
	if aborted := s.abortedFor(s.current.candidate); aborted != nil {
		return aborted.Spec.Message
	}
	return ""
}

// failure says why the last call of the candidate about a Cluster has failed, or nothing.
func (c *cluster) failure() string {
	worst := ""
	for k, a := range c.evidence.asked {
		if a.err != nil {
			if says := k.handler + ": " + a.err.Error(); worst == "" || says < worst {
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
