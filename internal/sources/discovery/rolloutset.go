// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"log/slog"
	"math"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// RolloutSet applies the ExtensionRollouts of a source to the registry and the engine, and decides the condition Ready
// of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type RolloutSet struct {
	set[registry.Rollout, status.Rollout]
	engine *rollout.Engine
}

// NewRolloutSet returns a RolloutSet without ExtensionRollouts.
func NewRolloutSet(r Registry, engine *rollout.Engine, logger *slog.Logger) *RolloutSet {
	s := &RolloutSet{engine: engine}
	s.init(kind[registry.Rollout, status.Rollout]{
		name: rollout.Kind, word: "rollout", most: math.MaxInt, show: rolloutStatus, says: saysReady,
		judge: each(s.verdict), content: func(of *registry.Rollout) any { return of },
	}, r, logger)
	return s
}

// Set replaces the ExtensionRollouts. refused are the messages on those that are not valid, by name; rollouts may have
// earlier versions of them, which stay in effect.
func (s *RolloutSet) Set(rollouts []registry.Rollout, refused map[string]string) {
	s.engine.Use(rollouts)
	s.registry.SetRollouts(rollouts)
	s.objects, s.refused = make(map[string]*registry.Rollout, len(rollouts)), refused
	for _, of := range s.registry.Snapshot().Rollouts() {
		s.objects[of.Name] = of
	}
}

func (s *RolloutSet) verdict(in *registry.Snapshot, name string, of *registry.Rollout) extensionconfig.Verdict {
	verdict := extensionconfig.JudgeRollout(in, of)
	if !s.engine.Readable() && verdict.Ready() {
		const calls = "Calls fail with NotReady: not all "
		verdict = extensionconfig.Verdict{Reason: v1alpha1.RecordsMissingReason, Message: calls +
			rollout.RecordKind + "s have been read, which say which Clusters have moved; the log says which one cannot be"}
	}
	if aborted := s.engine.Aborted(name); aborted != "" && verdict.Ready() {
		verdict.Reason = v1alpha1.AbortedReason
		verdict.Message += "; no more Clusters move: " + aborted
	}
	return verdict
}

// rolloutStatus returns what the status shows of an ExtensionRollout.
func rolloutStatus(
	_ *registry.Snapshot, name string, of *registry.Rollout, verdict extensionconfig.Verdict,
) status.Rollout {
	shown := status.Rollout{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if of != nil {
		shown.Stable, shown.Candidate = of.Stable, of.Candidate
	}
	return shown
}

// Listed returns what was reported last of each ExtensionRollout, by name, with what is known of its Clusters now.
func (s *RolloutSet) Listed() []status.Rollout {
	shown, _ := s.set.Listed()
	all := slices.Clone(shown)
	for i := range all {
		s.engine.Fill(&all[i])
	}
	return all
}
