// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"log/slog"
	"slices"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Set applies the HandlerChains of a source to the registry, and decides the condition Ready of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type Set struct {
	kinds.Judged[registry.Chain, status.Chain]

	registry     Registry
	needClusters func()
}

// Registry is where a Set puts what it has.
type Registry interface {
	registry.Snapshots
	// SetChains replaces the chains of handlers, whose steps need not be registered. It keeps chains.
	SetChains(chains []registry.Chain)
}

var _ kinds.Set = (*Set)(nil)

// NewSet returns a Set without chains. needClusters is called if steps may be chosen by the labels of Clusters; it is
// nil where these cannot be known.
func NewSet(r Registry, needClusters func(), logger *slog.Logger) *Set {
	s := &Set{registry: r, needClusters: needClusters}
	s.Init(kinds.Judging[registry.Chain, status.Chain]{
		Kind: Kind, Word: "chain", Most: limits.StatusChains, In: listed, Show: shown, Says: kinds.SaysReady,
		Judge: kinds.Each(func(in *registry.Snapshot, _ string, c *registry.Chain) kinds.Verdict {
			return Judge(in, c, needClusters != nil)
		}),
		Content: func(c *registry.Chain) any { return c },
	}, r, logger)
	return s
}

// Use implements kinds.Set.
func (s *Set) Use(items []kinds.Item) (changed []string) {
	chains := kinds.In[registry.Chain](items)
	for i := range items {
		if closed := items[i].Closed; closed != nil && closed.Chain != nil {
			chains = append(chains, *closed.Chain)
		}
	}
	s.registry.SetChains(chains)
	objects := make(map[string]*registry.Chain, len(chains))
	for _, c := range s.registry.Snapshot().Chains() {
		objects[c.Name] = c
	}
	s.Put(objects, kinds.Mistakes(items))
	if s.needClusters != nil && slices.ContainsFunc(chains, func(c registry.Chain) bool { return c.Strict }) {
		s.needClusters()
	}
	return nil
}

// shown returns what the status shows of a chain.
func shown(
	in *registry.Snapshot, name string, c *registry.Chain, verdict kinds.Verdict,
) status.Chain {
	of := status.Chain{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if c == nil {
		return of
	}
	of.Hook = c.Hook.Hook
	if c.Block {
		of.OnPartialCoverage = string(v1alpha1.OnPartialCoverageBlock)
	}
	for i := range c.Steps {
		step := &c.Steps[i]
		e, registered := in.Handler(step.Handler)
		as := status.ChainStep{Handler: step.Handler, Registered: registered, Optional: step.Optional, OnHold: step.OnHold}
		if registered && e.Registration.InProcess != nil {
			as.Kind = e.Registration.InProcess.Kind()
		}
		of.Steps = append(of.Steps, as)
	}
	return of
}
