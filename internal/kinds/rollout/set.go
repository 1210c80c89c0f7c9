// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"log/slog"
	"math"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Set applies the ExtensionRollouts of a source to the registry and the engine, and decides the condition Ready of
// each.
//
// List is safe for concurrent use. The other methods belong to one goroutine.
type Set struct {
	kinds.Judged[registry.Rollout, status.Rollout]

	registry     Registry
	engine       *Engine
	needClusters func()
}

// Registry is where a Set puts what it has.
type Registry interface {
	registry.Snapshots
	// SetRollouts replaces the rollouts, whose members need not be registered.
	SetRollouts(rollouts []registry.Rollout)
}

var _ kinds.Set = (*Set)(nil)

// NewSet returns a Set without ExtensionRollouts. needClusters is called if there are some: Clusters may be chosen by
// their labels. It is nil where these cannot be known.
func NewSet(r Registry, engine *Engine, needClusters func(), logger *slog.Logger) *Set {
	s := &Set{registry: r, engine: engine, needClusters: needClusters}
	s.Init(kinds.Judging[registry.Rollout, status.Rollout]{
		Kind: Kind, Word: "rollout", Most: math.MaxInt, In: listed, Show: shown, Says: kinds.SaysReady,
		Judge: kinds.Each(s.verdict), Content: func(of *registry.Rollout) any { return of },
	}, r, logger)
	return s
}

// Use implements kinds.Set.
func (s *Set) Use(items []kinds.Item) (changed []string) {
	rollouts := kinds.In[registry.Rollout](items)
	s.engine.Use(rollouts)
	s.registry.SetRollouts(rollouts)
	objects := make(map[string]*registry.Rollout, len(rollouts))
	for _, of := range s.registry.Snapshot().Rollouts() {
		objects[of.Name] = of
	}
	s.Put(objects, kinds.Mistakes(items))
	if s.needClusters != nil && len(rollouts) > 0 {
		s.needClusters()
	}
	return nil
}

// unread is the verdict while the records are not known.
func (s *Set) unread() kinds.Verdict {
	message := "Calls fail with NotReady: it is not known which Clusters have moved, because not all " + RecordKind +
		"s have been read; the log names the one that cannot be read"
	if s.needClusters != nil {
		message = "Calls fail with NotReady: the " + RecordKind + "s have not been read; install their " +
			"CustomResourceDefinition, and allow the gateway to list and watch them"
	}
	return kinds.Verdict{Reason: v1alpha1.RecordsMissingReason, Message: message}
}

func (s *Set) verdict(in *registry.Snapshot, name string, of *registry.Rollout) kinds.Verdict {
	verdict := Judge(in, of)
	if !s.engine.Readable() && verdict.Ready() {
		return s.unread()
	}
	if aborted := s.engine.Aborted(name); aborted != "" && verdict.Ready() {
		verdict.Reason = v1alpha1.AbortedReason
		verdict.Message += "; no more Clusters move: " + aborted
	}
	return verdict
}

// shown returns what the status shows of an ExtensionRollout.
func shown(
	_ *registry.Snapshot, name string, of *registry.Rollout, verdict kinds.Verdict,
) status.Rollout {
	as := status.Rollout{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if of != nil {
		as.Stable, as.Candidate = of.Stable, of.Candidate
	}
	return as
}

// List implements kinds.Set. It adds what is known of the Clusters now.
func (s *Set) List(g *status.Gateway) {
	shown, missed := s.Listed()
	all := slices.Clone(shown)
	for i := range all {
		s.engine.Fill(&all[i])
	}
	listed.Put(g, all, missed)
}
