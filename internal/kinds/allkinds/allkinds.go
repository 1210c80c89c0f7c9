// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allkinds lists all kinds of objects that decide what calls get. Whoever adds one adds a package for it, and a
// line to the table here.
package allkinds

import (
	"log/slog"
	"slices"
	"strings"
	"time"

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

// line is a kind in the table.
type line struct {
	kinds.Kind
	// rules and newSet are those of the kind. They are nil for ExtensionConfig, which sources handle one by one.
	rules  func(*Config) kinds.Rules
	newSet func(*SetConfig) kinds.Set
	// first means that its objects are applied before those of others: they are for handlers that these have.
	first bool
}

// table lists the kinds in the order in which people read them. Handlers are applied before the chains that name them.
var table = []line{
	{Kind: extensionconfig.Description},
	{
		Kind: rollout.Description, first: true,
		rules: func(c *Config) kinds.Rules { return rollout.Rules(c.Rollout, c.Registered, c.Moves) },
		newSet: func(c *SetConfig) kinds.Set {
			return rollout.NewSet(c.Registry, c.Engine, c.NeedClusters, c.Logger)
		},
	},
	{
		Kind:   hookrule.Description,
		rules:  func(c *Config) kinds.Rules { return c.Rules.Rules(c.Registered) },
		newSet: func(c *SetConfig) kinds.Set { return hookrule.NewSet(c.Registry, c.Hooks, c.OfRules, c.Logger) },
	},
	{
		Kind:  hookjob.Description,
		rules: func(c *Config) kinds.Rules { return c.Jobs.Rules(c.Registered) },
		newSet: func(c *SetConfig) kinds.Set {
			return kinds.NewLocalSet(&hookjob.Description, c.Registry, c.Hooks, c.Logger)
		},
	},
	{
		Kind:   handlerchain.Description,
		rules:  func(c *Config) kinds.Rules { return handlerchain.Rules(c.Hooks, c.Registered) },
		newSet: func(c *SetConfig) kinds.Set { return handlerchain.NewSet(c.Registry, c.NeedClusters, c.Logger) },
	},
	{
		Kind: extensionpolicy.Description, first: true,
		rules:  func(c *Config) kinds.Rules { return extensionpolicy.Rules(c.Hooks, c.Conditions, c.Types) },
		newSet: func(c *SetConfig) kinds.Set { return extensionpolicy.NewSet(c.Registry, c.Exists, c.Types, c.Logger) },
	},
}

// Table lists all kinds, in the order in which people read them.
func Table() []kinds.Kind {
	all := make([]kinds.Kind, len(table))
	for i := range table {
		all[i] = table[i].Kind
	}
	return all
}

// Own lists the kinds of Hookgate's own: all but ExtensionConfig.
func Own() []kinds.Kind {
	return slices.DeleteFunc(Table(), func(k kinds.Kind) bool { return k.New == nil })
}

// applied lists the lines of Hookgate's own kinds in the order in which their objects are applied.
func applied() []line {
	own := slices.DeleteFunc(slices.Clone(table), func(l line) bool { return l.rules == nil })
	slices.SortStableFunc(own, func(a, b line) int {
		switch {
		case a.first == b.first:
			return 0
		case a.first:
			return -1
		}
		return 1
	})
	return own
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
	Rollout rollout.Compile

	// Registered returns what is registered, for admission. It may be nil.
	Registered func() *registry.Snapshot
	// Moves knows which Clusters have moved, for admission. It may be nil.
	Moves rollout.Moves
}

// Rules returns the rules of Hookgate's own kinds, in the order of Sets.
func Rules(c Config) []kinds.Rules {
	if c.Rules == nil {
		c.Rules = hookrule.NewCompiler(c.Hooks, c.Conditions, c.Types, time.Now).WithoutCluster()
	}
	if c.Jobs == nil {
		c.Jobs = hookjob.NewCompiler(c.Hooks, c.Conditions, c.Types, &hookjob.Allowed{}, nil)
	}
	if c.Rollout == nil {
		c.Rollout = rollout.CompileAlone
	}
	if c.Registered == nil {
		c.Registered = func() *registry.Snapshot { return nil }
	}
	own := applied()
	all := make([]kinds.Rules, len(own))
	for i := range own {
		all[i] = own[i].rules(&c)
	}
	return all
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

// Sets are the sets of a source, in the order in which they are applied.
type Sets []Applied

// Applied is the set of a kind.
type Applied struct {
	kinds.Kind
	kinds.Set
}

// NewSets returns sets without objects.
func NewSets(c SetConfig) Sets {
	own := applied()
	all := make(Sets, len(own))
	for i := range own {
		all[i] = Applied{own[i].Kind, own[i].newSet(&c)}
	}
	return all
}

// Policies returns the set of the policies, which say how extensions are called.
func (s Sets) Policies() *extensionpolicy.Set {
	i := slices.IndexFunc(s, func(of Applied) bool { return of.Name == extensionpolicy.Kind })
	return s[i].Set.(*extensionpolicy.Set)
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
