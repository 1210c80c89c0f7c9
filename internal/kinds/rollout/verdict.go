// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Judge returns the verdict on a valid ExtensionRollout.
func Judge(s *registry.Snapshot, of *registry.Rollout) kinds.Verdict {
	for _, name := range []string{of.Name, of.Stable, of.Candidate} {
		if first, _ := s.MemberOf(name); name != "" && first != nil && first.Name != of.Name {
			return kinds.Verdictf(v1alpha1.ConflictedReason, "Calls fail: %q also belongs to %s: an ExtensionConfig "+
				"can be in only one ExtensionRollout", name, first)
		}
	}
	if _, known := s.Registration(of.Stable); !known {
		return kinds.Verdictf(v1alpha1.MemberMissingReason, "Calls fail: the handlers of the stable ExtensionConfig %q "+
			"are not known", of.Stable)
	}
	if of.Candidate == "" {
		return kinds.Verdictf(v1alpha1.ReadyReason, "%s answers for all Clusters", of.Stable)
	}
	if _, known := s.Registration(of.Candidate); !known {
		return kinds.Verdictf(v1alpha1.MemberMissingReason, "%s answers calls, and no Cluster moves: the handlers "+
			"of the candidate, ExtensionConfig %q, are not known", of.Stable, of.Candidate)
	}
	var lacking []string
	for _, e := range s.HandlersOf(of.Stable) {
		if offered, ok := s.Handler(e.Handler.Name + "." + of.Name); ok && offered.Variants.CandidateEntry == nil {
			lacking = append(lacking, e.Handler.Name)
		}
	}
	if len(lacking) > 0 {
		return kinds.Verdictf(v1alpha1.ReadyReason, "%s answers calls; calls for Clusters that have moved go "+
			"to %s, which lacks the handlers %s", of.Stable, of.Candidate, text.Join(lacking, ", ", limits.Problems))
	}
	return kinds.Verdictf(v1alpha1.ReadyReason, "%s answers calls; calls for Clusters that have moved go to %s",
		of.Stable, of.Candidate)
}
