// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"log/slog"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// ChainSet applies the HandlerChains of a source to the registry, and decides the condition Ready of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type ChainSet struct {
	set[registry.Chain, status.Chain]
}

// NewChainSet returns a ChainSet without chains. inCluster reports whether the source knows the labels of Clusters.
func NewChainSet(r Registry, inCluster bool, logger *slog.Logger) *ChainSet {
	s := &ChainSet{}
	s.init(kind[registry.Chain, status.Chain]{
		name: kinds.HandlerChain, word: "chain", most: limits.StatusChains, show: chainStatus, says: saysReady,
		judge: each(func(in *registry.Snapshot, _ string, c *registry.Chain) extensionconfig.Verdict {
			return extensionconfig.JudgeChain(in, c, inCluster)
		}),
		content: func(c *registry.Chain) any { return c },
	}, r, logger)
	return s
}

// Set replaces the chains in the registry, which keeps them. refused are the messages on those that are not valid, by
// name; chains may have earlier versions of them, which stay in effect, or what stands for them while they are closed.
func (s *ChainSet) Set(chains []registry.Chain, refused map[string]string) {
	s.registry.SetChains(chains)
	s.refused = refused
	s.objects = make(map[string]*registry.Chain, len(chains))
	for _, c := range s.registry.Snapshot().Chains() {
		s.objects[c.Name] = c
	}
}

// chainStatus returns what the status shows of a chain.
func chainStatus(
	in *registry.Snapshot, name string, c *registry.Chain, verdict extensionconfig.Verdict,
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
		e, registered := in.Handler(step.Handler)
		of := status.ChainStep{Handler: step.Handler, Registered: registered, Optional: step.Optional}
		if registered && e.Registration.Local != nil {
			of.Kind = e.Registration.Local.Kind()
		}
		shown.Steps = append(shown.Steps, of)
	}
	return shown
}
