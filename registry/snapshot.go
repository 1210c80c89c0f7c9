// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// Snapshot is the state of a Registry at one moment. It never changes, so it is safe for concurrent use; callers must
// not modify its results. Lookups do not lock and, for names in lower case, do not allocate.
type Snapshot struct {
	ready      bool
	unready    string
	sidecar    bool
	merged     map[string]hook.GroupHook // by name in lower case
	generation uint64

	registrations []*Registration // by name
	all           []*Entry        // by registered name
	byHook        map[hook.GroupHook][]*Entry
	selected      map[hook.GroupHook]*selected
	byConfig      map[string]*config
	policies      map[string]Policies // by ExtensionConfig, registered or not
	chains        []*Chain            // by name
	locals        []*Registration     // by name, whether they are served or not
	rollouts      []*Rollout          // by name
	memberOf      map[string]*Rollout // by ExtensionConfig, also one with the name of the Rollout
	offers        map[string]*config  // by Rollout
	standing      map[hook.GroupHook]standing
	undiscovered  []*Undiscovered          // by key
	closures      []*Closure               // by kind and name
	closed        map[string]*Closure      // by the names of extensions and of handlers that are closed
	shadowed      map[string]*Registration // ExtensionConfigs whose names local registrations have
	// byHashedLabel holds the few labels from which names cannot be read back. The others need no map, which would be
	// the largest one that every update copies.
	byHashedLabel map[string]*Entry
	byOwnName     map[string]*Entry // those that are offered so
	collisions    map[*Entry]string // why others are not, though their policies say so
}

// config is one registration with its entries.
type config struct {
	registration *Registration
	entries      []*Entry // ordered by the handlers' own names
	withheld     []Handler
}

func (c *config) handler(name string) (*Entry, bool) {
	// The handlers' own names can sort differently from the registered names, because '-' sorts before '.'.
	i, ok := slices.BinarySearchFunc(c.entries, name, func(e *Entry, name string) int {
		return cmp.Compare(e.Handler.Name, name)
	})
	if !ok {
		return nil, false
	}
	return c.entries[i], true
}

// Ready reports whether the source has tried every ExtensionConfig.
func (s *Snapshot) Ready() bool { return s.ready }

// Unready returns the reason why a snapshot is not ready, as a clause.
func (s *Snapshot) Unready() string { return s.unready }

// IsSidecar reports whether the registry is one of NewSidecar, whose handlers keep their own names.
func (s *Snapshot) IsSidecar() bool { return s.sidecar }

// Generation returns the number of visible changes up to this snapshot. Snapshots of one Registry with the same
// generation have equal handlers.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Handlers returns the handlers of every version of a hook, ordered by registered name: of the members of a Rollout,
// those of the Rollout.
func (s *Snapshot) Handlers(gh hook.GroupHook) []*Entry { return s.byHook[gh] }

// Handler returns the handler with a registered name or label, or that is offered under a name, in any letter case.
func (s *Snapshot) Handler(name string) (*Entry, bool) {
	name = strings.ToLower(name)
	if s.sidecar {
		for _, c := range s.byConfig {
			return c.handler(name)
		}
		return nil, false
	}
	if handler, configName, ok := strings.Cut(name, "."); ok {
		return s.handlerOf(configName, handler)
	}
	if e, ok := s.byLabel(name); ok {
		return e, true
	}
	e, ok := s.byOwnName[name]
	return e, ok
}

// byLabel returns the handler with a label.
func (s *Snapshot) byLabel(label string) (*Entry, bool) {
	if e, ok := s.byHashedLabel[label]; ok {
		return s.handlerOf(e.Registration.Name, e.Handler.Name)
	}
	handler, configName, ok := splitLabel(label)
	if !ok {
		return nil, false
	}
	return s.handlerOf(configName, handler)
}

func (s *Snapshot) handlerOf(extensionConfig, handler string) (*Entry, bool) {
	c := s.offering(extensionConfig)
	if c == nil {
		return nil, false
	}
	return c.handler(handler)
}

// AnyHandler returns the first handler of the named ExtensionConfig for a hook of the group.
func (s *Snapshot) AnyHandler(extensionConfig, group string) (*Entry, bool) {
	c := s.offering(extensionConfig)
	if c == nil {
		return nil, false
	}
	i := slices.IndexFunc(c.entries, func(e *Entry) bool { return e.Handler.Hook.Group == group })
	if i < 0 {
		return nil, false
	}
	return c.entries[i], true
}

// All returns every handler that is registered, ordered by registered name, those of members of a Rollout in place of
// its own.
func (s *Snapshot) All() []*Entry { return s.all }

// Registrations returns every registration, ordered by name.
func (s *Snapshot) Registrations() []*Registration { return s.registrations }

// Registration returns the registration of an ExtensionConfig.
func (s *Snapshot) Registration(name string) (*Registration, bool) {
	c, ok := s.byConfig[name]
	if !ok {
		return nil, false
	}
	return c.registration, true
}

// HandlersOf returns the handlers of an ExtensionConfig, ordered by their own names.
func (s *Snapshot) HandlersOf(extensionConfig string) []*Entry {
	c, ok := s.byConfig[extensionConfig]
	if !ok {
		return nil
	}
	return c.entries
}

// Withheld returns the handlers of an ExtensionConfig that are not served, because its policy does not list their
// hooks, ordered by their own names.
func (s *Snapshot) Withheld(extensionConfig string) []Handler {
	c, ok := s.byConfig[extensionConfig]
	if !ok {
		return nil
	}
	return c.withheld
}

// WithheldAs returns the handler that has a registered name, or a label without a hash, and is withheld, with the
// policy that withholds it.
func (s *Snapshot) WithheldAs(name string) (Handler, *Policy, bool) {
	handler, extensionConfig, ok := splitName(name)
	if !ok {
		return Handler{}, nil, false
	}
	if of, ok := s.memberOf[extensionConfig]; ok {
		extensionConfig = of.Stable
	}
	withheld := s.Withheld(extensionConfig)
	i := slices.IndexFunc(withheld, func(h Handler) bool { return h.Name == handler })
	if i < 0 {
		return Handler{}, nil, false
	}
	return withheld[i], s.policies[extensionConfig].All, true
}
