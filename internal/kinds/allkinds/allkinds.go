// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allkinds lists all kinds of objects that decide what calls get. Whoever adds one adds a package for it, and a
// line to each list here.
package allkinds

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// Table lists all kinds, by name.
func Table() []kinds.Kind {
	return []kinds.Kind{
		extensionconfig.Description,
		extensionpolicy.Description,
		rollout.Description,
		handlerchain.Description,
		hookjob.Description,
		hookrule.Description,
	}
}

// Own lists the kinds of Hookgate's own: all but ExtensionConfig.
func Own() []kinds.Kind {
	return slices.DeleteFunc(Table(), func(k kinds.Kind) bool { return k.New == nil })
}

// Config is what the rules of all kinds need.
type Config struct {
	Hooks      *catalog.Catalog
	Conditions *policy.Compiler
	Types      *policy.Types
	// Rules and Jobs compile the objects of their kinds, and Rollout those of its. Nil means as they are in a directory,
	// without what the rest of the gateway has.
	Rules   *hookrule.Compiler
	Jobs    *hookjob.Compiler
	Rollout func(*v1alpha1.ExtensionRollout) (registry.Rollout, field.ErrorList)

	// Registered returns what is registered, for admission. It may be nil.
	Registered func() *registry.Snapshot
	// Moves knows which Clusters have moved, for admission. It may be nil.
	Moves rollout.Moves
}

// Rules returns the rules of Hookgate's own kinds.
func Rules(c Config) []kinds.Rules {
	if c.Rules == nil {
		c.Rules = hookrule.NewCompiler(c.Hooks, c.Conditions, c.Types, time.Now).WithoutCluster()
	}
	if c.Jobs == nil {
		c.Jobs = hookjob.NewCompiler(c.Hooks, c.Conditions, c.Types, &hookjob.Allowed{}, nil)
	}
	if c.Rollout == nil {
		c.Rollout = func(o *v1alpha1.ExtensionRollout) (registry.Rollout, field.ErrorList) {
			return registry.Rollout{Name: o.Name, Stable: o.Spec.Stable, Candidate: o.Spec.Candidate}, rollout.Check(o, false)
		}
	}
	if c.Registered == nil {
		c.Registered = func() *registry.Snapshot { return nil }
	}
	return []kinds.Rules{
		rollout.Rules(c.Rollout, c.Registered, c.Moves),
		extensionpolicy.Rules(c.Hooks, c.Conditions, c.Types),
		c.Rules.Rules(c.Registered),
		c.Jobs.Rules(c.Registered),
		handlerchain.Rules(c.Hooks, c.Registered),
	}
}

// Registry is where Sets put what they have.
type Registry interface {
	extensionpolicy.Registry
	handlerchain.Registry
	kinds.LocalRegistry
	rollout.Registry
}

// SetConfig is what the sets of a source need.
type SetConfig struct {
	Registry Registry
	Hooks    *catalog.Catalog
	Types    *policy.Types
	Logger   *slog.Logger
	// Engine decides for which Clusters the candidates of ExtensionRollouts answer.
	Engine *rollout.Engine
	// Exists reports whether the source has an ExtensionConfig, registered or not.
	Exists func(extensionConfig string) bool
	// NeedClusters and OfRules are nil where there is no cluster.
	NeedClusters func()
	OfRules      hookrule.Cluster
}

// Sets are the sets of a source.
type Sets struct {
	Rollouts *rollout.Set
	Policies *extensionpolicy.Set
	Rules    *hookrule.Set
	Jobs     *kinds.LocalSet
	Chains   *handlerchain.Set
}

// NewSets returns sets without objects.
func NewSets(c SetConfig) *Sets {
	return &Sets{
		Rollouts: rollout.NewSet(c.Registry, c.Engine, c.NeedClusters, c.Logger),
		Policies: extensionpolicy.NewSet(c.Registry, c.Exists, c.Types, c.Logger),
		Rules:    hookrule.NewSet(c.Registry, c.Hooks, c.OfRules, c.Logger),
		Jobs:     kinds.NewLocalSet(hookjob.Kind, hookjob.HandlerName, c.Registry, c.Hooks, c.Logger),
		Chains:   handlerchain.NewSet(c.Registry, c.NeedClusters, c.Logger),
	}
}

// Applied is the set of a kind.
type Applied struct {
	kinds.Kind
	kinds.Set
}

// All returns the sets in the order in which they are applied: policies before the handlers that they are for, and
// chains after their steps.
func (s *Sets) All() []Applied {
	return []Applied{
		{rollout.Description, s.Rollouts},
		{extensionpolicy.Description, s.Policies},
		{hookrule.Description, s.Rules},
		{hookjob.Description, s.Jobs},
		{handlerchain.Description, s.Chains},
	}
}

// Is reports whether a kind is one of Table.
func Is(name string) bool {
	_, ok := find(func(k *kinds.Kind) bool { return k.Name == name })
	return ok
}

// Named returns the kind that someone who wrote name meant: of that name, in any letter case, or one edit away from it,
// which plurals are.
func Named(name string) (kind string, ok bool) {
	written := strings.ToLower(text.Cut(name, limits.QuotedBytes))
	meant, ok := find(func(k *kinds.Kind) bool { return text.EditDistance(written, strings.ToLower(k.Name)) <= 1 })
	return meant.Name, ok
}

// Close is kinds.Kind.Close for a kind of that name. An object of which that is not known closes all hooks.
func Close(kind, name string, content []byte, mistake string, hooks *catalog.Catalog) kinds.Closed {
	of, ok := find(func(k *kinds.Kind) bool { return k.Name == kind })
	if !ok {
		of = kinds.Kind{Name: kind, Closes: func(_ kinds.Spec, c *kinds.Closed) { c.AllHooks = true }}
	}
	return of.Close(name, content, mistake, hooks)
}

// find returns the first kind of Table that is meant.
func find(isMeant func(*kinds.Kind) bool) (kinds.Kind, bool) {
	for _, k := range Table() {
		if isMeant(&k) {
			return k, true
		}
	}
	return kinds.Kind{}, false
}
