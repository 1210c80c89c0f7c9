// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/hook"
)

// Registry holds the registrations of all ExtensionConfigs. It is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex // held by writers
	current atomic.Pointer[Snapshot]
	ready   chan struct{} // closed once
}

// New returns an empty Registry that is not ready.
func New() *Registry { return newRegistry(false) }

// NewSole returns an empty Registry that is not ready, for a gateway in front of one extension alone. Its handlers keep
// their own names and use them as labels, so that callers see the extension as if it answered itself. Apply refuses a
// second extension.
func NewSole() *Registry { return newRegistry(true) }

func newRegistry(sole bool) *Registry {
	r := &Registry{ready: make(chan struct{})}
	r.current.Store(&Snapshot{
		sole:          sole,
		unready:       "the gateway has not read its ExtensionConfigs yet",
		byHook:        map[hook.GroupHook][]*Entry{},
		byConfig:      map[string]*config{},
		policies:      map[string]Policies{},
		byHashedLabel: map[string]*Entry{},
	})
	return r
}

// Snapshot returns the current state without locking.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// SetReady marks the registry as ready, once its source has tried every ExtensionConfig.
func (r *Registry) SetReady() {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	if s.ready {
		return
	}
	next := *s
	next.ready = true
	next.generation++
	r.current.Store(&next)
	close(r.ready)
}

// SetUnready replaces the default reason reported until the registry is ready.
func (r *Registry) SetUnready(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	if s.ready || s.unready == text {
		return
	}
	next := *s
	next.unready = text
	next.generation++
	r.current.Store(&next)
}

// Ready returns a channel that SetReady closes.
func (r *Registry) Ready() <-chan struct{} { return r.ready }

// Apply adds the registration of one ExtensionConfig, or replaces the one with the same name. If it returns an error,
// the registry is unchanged. The error joins every mistake, named by ExtensionConfig and field, in a fixed order.
// Apply copies reg deeply.
func (r *Registry) Apply(reg Registration) error {
	if err := check(&reg); err != nil {
		return err
	}
	reg = clone(reg)

	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	c := s.newConfig(&reg, s.policies[reg.Name])
	if s.sole {
		isOther := func(other *Registration) bool { return other.Name != reg.Name }
		if i := slices.IndexFunc(s.registrations, isOther); i >= 0 {
			return fmt.Errorf("ExtensionConfig %q: the gateway answers for %q alone", reg.Name, s.registrations[i].Name)
		}
	} else if err := s.checkLabels(c); err != nil {
		return err
	}
	r.current.Store(s.with(reg.Name, c))
	return nil
}

// Remove removes the registration of an ExtensionConfig, if it exists.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	if _, ok := s.byConfig[name]; ok {
		r.current.Store(s.with(name, nil))
	}
}

// clone returns a deep copy of reg, with its handlers ordered by name.
func clone(reg Registration) Registration {
	reg.ClientConfig.CABundle = bytes.Clone(reg.ClientConfig.CABundle)
	reg.Settings = maps.Clone(reg.Settings)
	reg.Handlers = slices.Clone(reg.Handlers)
	slices.SortFunc(reg.Handlers, func(a, b Handler) int { return cmp.Compare(a.Name, b.Name) })
	if reg.NamespaceSelector != nil {
		reg.NamespaceSelector = reg.NamespaceSelector.DeepCopySelector()
	}
	return reg
}

// newConfig returns reg with its entries, to which it applies the policies.
func (s *Snapshot) newConfig(reg *Registration, policies Policies) *config {
	c := &config{registration: reg, entries: make([]*Entry, len(reg.Handlers))}
	for i, h := range reg.Handlers {
		name, label := h.Name, h.Name
		if !s.sole {
			name += "." + reg.Name
			label = Label(name)
		}
		p := policies.of(h.Name)
		c.entries[i] = &Entry{
			Name: name, Label: label, Handler: override(h, p), Registration: reg, Policy: p, ExtensionPolicy: policies.All,
		}
	}
	return c
}

// checkLabels returns an error if another handler has a label of c. Only labels with a hash can collide: by intent, or
// with a probability of one in four billion.
func (s *Snapshot) checkLabels(c *config) error {
	var errs []error
	seen := make(map[string]*Entry, len(c.entries))
	for _, e := range c.entries {
		other, ok := seen[e.Label]
		if !ok {
			if other, ok = s.Handler(e.Label); ok && other.Registration.Name == c.registration.Name {
				ok = false // about to be replaced
			}
		}
		if ok {
			errs = append(errs, fmt.Errorf("ExtensionConfig %q: handler %q: label %q is the one of handler %q already",
				c.registration.Name, e.Handler.Name, e.Label, other.Name))
		}
		seen[e.Label] = e
	}
	return errors.Join(errs...)
}
