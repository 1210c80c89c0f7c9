// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// JudgeRollout returns the verdict on a valid ExtensionRollout.
func JudgeRollout(s *registry.Snapshot, of *registry.Rollout) Verdict {
	for _, name := range []string{of.Name, of.Stable, of.Candidate} {
		if first, _ := s.MemberOf(name); name != "" && first != nil && first.Name != of.Name {
			return Verdict{v1alpha1.ConflictedReason, fmt.Sprintf("Calls fail: %q belongs to %s, too: an ExtensionConfig "+
				"can be in one ExtensionRollout only", name, first)}
		}
	}
	if _, known := s.Registration(of.Stable); !known {
		return Verdict{v1alpha1.MemberMissingReason, fmt.Sprintf("Calls fail: the handlers of ExtensionConfig %q, which is "+
			"stable, are not known", of.Stable)}
	}
	if of.Candidate == "" {
		return Verdict{v1alpha1.ReadyReason, fmt.Sprintf("%s answers for all Clusters", of.Stable)}
	}
	if _, known := s.Registration(of.Candidate); !known {
		return Verdict{v1alpha1.MemberMissingReason, fmt.Sprintf("%s answers, and no Cluster moves: the handlers of "+
			"ExtensionConfig %q, the candidate, are not known", of.Stable, of.Candidate)}
	}
	var lacking []string
	for _, e := range s.HandlersOf(of.Stable) {
		if offered, ok := s.Handler(e.Handler.Name + "." + of.Name); ok && offered.Variants.CandidateEntry == nil {
			lacking = append(lacking, e.Handler.Name)
		}
	}
	if len(lacking) > 0 {
		return Verdict{v1alpha1.ReadyReason, fmt.Sprintf("%s answers, and %s for Clusters that have moved; it lacks the "+
			"handlers %s", of.Stable, of.Candidate, text.Join(lacking, ", ", limits.Problems))}
	}
	return Verdict{v1alpha1.ReadyReason, fmt.Sprintf("%s answers, and %s for Clusters that have moved", of.Stable,
		of.Candidate)}
}
