// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"log/slog"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Cluster is what a Set tells whoever keeps the params and places of rules in a cluster.
type Cluster interface {
	// Use is given the rules as they are, what is in effect, and what that reads.
	Use(objects []*v1alpha1.HookRule, inEffect []registry.Registration, reads []Reference)
	// Shown returns listed rules with the Clusters that have their places.
	Shown(listed []status.InProcess) []status.InProcess
	// Problem says why what the references name is not known, and is empty if it is.
	Problem(references []Reference) string
}

// Set applies the HookRules of a source to the registry, and decides the condition Ready of each.
//
// List is safe for concurrent use. The other methods belong to one goroutine.
type Set struct {
	*kinds.LocalSet

	cluster Cluster                // may be nil
	reads   map[string][]Reference // by the names of the rules
}

// NewSet returns a Set without rules. cluster is nil where there is none.
func NewSet(r kinds.LocalRegistry, hooks *catalog.Catalog, cluster Cluster, logger *slog.Logger) *Set {
	return &Set{
		LocalSet: kinds.NewLocalSet(&Description, r, hooks, logger), cluster: cluster, reads: map[string][]Reference{},
	}
}

// Use implements kinds.Set.
func (s *Set) Use(items []kinds.Item) (changed []string) {
	if s.cluster == nil {
		return s.LocalSet.Use(items)
	}
	clear(s.reads)
	inEffect := kinds.In[registry.Registration](items)
	var all []Reference
	for i := range inEffect {
		if rule, ok := inEffect[i].InProcess.(*Rule); ok {
			s.reads[inEffect[i].Name] = rule.References()
			all = append(all, rule.References()...)
		}
	}
	objects := make([]*v1alpha1.HookRule, 0, len(items))
	for i := range items {
		if o, ok := items[i].Object.(*v1alpha1.HookRule); ok {
			objects = append(objects, o)
		}
	}
	s.cluster.Use(objects, inEffect, all)
	return s.LocalSet.Use(items)
}

// List implements kinds.Set.
func (s *Set) List(g *status.Gateway) {
	s.LocalSet.List(g)
	if s.cluster != nil {
		g.Rules = s.cluster.Shown(g.Rules)
	}
}

// Verdicts implements kinds.Set. A rule whose params are not known is not ready.
func (s *Set) Verdicts() map[string]kinds.Verdict {
	verdicts := s.LocalSet.Verdicts()
	if s.cluster == nil {
		return verdicts
	}
	for name, v := range verdicts {
		problem := s.cluster.Problem(s.reads[name])
		if !v.Ready() || problem == "" {
			continue
		}
		says := "Calls fail with NotReady: "
		if v.Reason == v1alpha1.AuditReason {
			says = "The answer that it would give is not known: "
		}
		verdicts[name] = kinds.Verdict{Reason: v1alpha1.ParamsNotReadyReason, Message: says + problem}
	}
	return verdicts
}
