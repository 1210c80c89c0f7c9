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
	"github.com/hookgate/hookgate/registry"
)

// ChainSet applies the HandlerChains of a source to the registry, and decides the condition Ready of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type ChainSet struct {
	registry  Registry
	inCluster bool
	chains    map[string]*registry.Chain // by name
	refused   map[string]string          // messages, by name
	reported  *reports
	listed    atomic.Pointer[chainListing]
}

// chainListing is what the status shows of the chains.
type chainListing struct {
	chains []status.Chain
	missed int
}

// NewChainSet returns a ChainSet without chains. inCluster reports whether the source knows the labels of Clusters.
func NewChainSet(r Registry, inCluster bool, logger *slog.Logger) *ChainSet {
	s := &ChainSet{registry: r, inCluster: inCluster, reported: newReports("chain", "handlerChain", logger)}
	s.listed.Store(&chainListing{})
	return s
}

// Set replaces the chains in the registry, which keeps them. refused are the messages on those that are not valid, by
// name; chains may have earlier versions of them, which stay in effect, or what stands for them while they are closed.
func (s *ChainSet) Set(chains []registry.Chain, refused map[string]string) {
	s.registry.SetChains(chains)
	s.refused = refused
	s.chains = make(map[string]*registry.Chain, len(chains))
	for _, c := range s.registry.Snapshot().Chains() {
		s.chains[c.Name] = c
	}
}

// Verdicts returns the verdict on each chain, by name. It changes when handlers come and go.
func (s *ChainSet) Verdicts() map[string]extensionconfig.Verdict {
	snapshot := s.registry.Snapshot()
	verdicts := make(map[string]extensionconfig.Verdict, len(s.chains)+len(s.refused))
	for name, c := range s.chains {
		verdicts[name] = extensionconfig.JudgeChain(snapshot, c, s.inCluster)
	}
	for name, message := range s.refused {
		verdicts[name] = extensionconfig.Verdict{Reason: v1alpha1.InvalidReason, Message: message}
	}
	return verdicts
}

// Report logs the new verdicts, and keeps all of them for Listed. at returns the location of a chain, and may be nil.
func (s *ChainSet) Report(verdicts map[string]extensionconfig.Verdict, at func(name string) string) {
	names := slices.Sorted(maps.Keys(verdicts))
	snapshot := s.registry.Snapshot()
	l := &chainListing{missed: max(len(names)-limits.StatusChains, 0)}
	for i, name := range names {
		verdict := verdicts[name]
		if i < len(names)-l.missed {
			l.chains = append(l.chains, chainStatus(snapshot, name, s.chains[name], verdict))
		}
		if s.chains[name] == nil {
			continue // the source has reported its mistake
		}
		s.reported.logReady(name, report{s.chains[name], verdict}, at)
	}
	s.reported.keep(func(name string) bool { _, ok := verdicts[name]; return ok })
	s.listed.Store(l)
}

// Listed returns what was reported last of each chain, by name, and how many more there are than a status lists.
// Nothing of it may be changed.
func (s *ChainSet) Listed() (chains []status.Chain, missed int) {
	l := s.listed.Load()
	return l.chains, l.missed
}

// chainStatus returns what the status shows of a chain, which is nil if none of its versions was valid.
func chainStatus(
	snapshot *registry.Snapshot, name string, c *registry.Chain, verdict extensionconfig.Verdict,
) status.Chain {
	shown := status.Chain{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if c == nil {
		return shown
	}
	shown.Hook = c.Hook.Hook
	if c.Block {
		shown.OnPartialCoverage = string(v1alpha1.OnPartialCoverageBlock)
	}
	for i := range c.Steps {
		step := &c.Steps[i]
		e, registered := snapshot.Handler(step.Handler)
		of := status.ChainStep{Handler: step.Handler, Registered: registered, Optional: step.Optional}
		if registered && e.Registration.Local != nil {
			of.Kind = e.Registration.Local.Kind()
		}
		shown.Steps = append(shown.Steps, of)
	}
	return shown
}
