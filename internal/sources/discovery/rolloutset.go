// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

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
	registry Registry
	engine   *rollout.Engine
	rollouts map[string]*registry.Rollout // by name
	refused  map[string]string            // messages, by name
	reported *reports
	listed   atomic.Pointer[[]status.Rollout]
}

// NewRolloutSet returns a RolloutSet without ExtensionRollouts.
func NewRolloutSet(r Registry, engine *rollout.Engine, logger *slog.Logger) *RolloutSet {
	s := &RolloutSet{
		registry: r, engine: engine, reported: newReports("rollout", "extensionRollout", logger),
	}
	s.listed.Store(&[]status.Rollout{})
	return s
}

// Set replaces the ExtensionRollouts. refused are the messages on those that are not valid, by name; rollouts may have
// earlier versions of them, which stay in effect.
func (s *RolloutSet) Set(rollouts []registry.Rollout, refused map[string]string) {
	s.engine.Use(rollouts)
	s.registry.SetRollouts(rollouts)
	s.rollouts, s.refused = make(map[string]*registry.Rollout, len(rollouts)), refused
	for _, of := range s.registry.Snapshot().Rollouts() {
		s.rollouts[of.Name] = of
	}
}

// Verdicts returns the verdict on each ExtensionRollout, by name. It changes when ExtensionConfigs come and go.
func (s *RolloutSet) Verdicts() map[string]extensionconfig.Verdict {
	snapshot := s.registry.Snapshot()
	verdicts := make(map[string]extensionconfig.Verdict, len(s.rollouts)+len(s.refused))
	for name, of := range s.rollouts {
		verdict := extensionconfig.JudgeRollout(snapshot, of)
		if !s.engine.Readable() && verdict.Ready() {
			const calls = "Calls fail with NotReady: not all "
			verdict = extensionconfig.Verdict{Reason: v1alpha1.RecordsMissingReason, Message: calls +
				rollout.RecordKind + "s have been read, which say which Clusters have moved; the log says which one cannot be"}
		}
		if aborted := s.engine.Aborted(name); aborted != "" && verdict.Ready() {
			verdict.Reason = v1alpha1.AbortedReason
			verdict.Message += "; no more Clusters move: " + aborted
		}
		verdicts[name] = verdict
	}
	for name, message := range s.refused {
		verdicts[name] = extensionconfig.Verdict{Reason: v1alpha1.InvalidReason, Message: message}
	}
	return verdicts
}

// Report logs the new verdicts, and keeps all of them for Listed. at returns the location of an ExtensionRollout, and
// may be nil.
func (s *RolloutSet) Report(verdicts map[string]extensionconfig.Verdict, at func(name string) string) {
	var l []status.Rollout
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		verdict, of := verdicts[name], s.rollouts[name]
		shown := status.Rollout{
			Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
			Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
		}
		if of != nil {
			shown.Stable, shown.Candidate = of.Stable, of.Candidate
			s.reported.logReady(name, report{of, verdict}, at)
		}
		l = append(l, shown)
	}
	s.reported.keep(func(name string) bool { _, ok := verdicts[name]; return ok })
	s.listed.Store(&l)
}

// Listed returns what was reported last of each ExtensionRollout, by name, with what is known of its Clusters now.
func (s *RolloutSet) Listed() []status.Rollout {
	all := slices.Clone(*s.listed.Load())
	for i := range all {
		s.engine.Fill(&all[i])
	}
	return all
}
