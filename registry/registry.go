// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/hook"
)

// Snapshots returns the current snapshot of a registry, without blocking. *Registry is one.
type Snapshots interface {
	Snapshot() *Snapshot
}

var _ Snapshots = (*Registry)(nil)

// Registry holds the registrations of all ExtensionConfigs. It is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex // held by writers
	current atomic.Pointer[Snapshot]
	ready   chan struct{} // closed once
}

// New returns an empty Registry that is not ready. merged are the hooks for which the gateway offers one handler of its
// own, named as the hook in lower case, instead of those of extensions.
func New(merged ...hook.GroupHook) *Registry { return newRegistry(false, merged) }

// NewSidecar returns an empty Registry that is not ready, for a gateway in front of one extension alone. Its handlers
// keep their own names and use them as labels, so that callers see the extension as if it answered itself. Apply
// refuses a second extension.
func NewSidecar() *Registry { return newRegistry(true, nil) }

func newRegistry(sidecar bool, merged []hook.GroupHook) *Registry {
	r := &Registry{ready: make(chan struct{})}
	r.current.Store(&Snapshot{
		sidecar:       sidecar,
		merged:        mergedByName(merged),
		unready:       "the gateway has not read its ExtensionConfigs yet",
		byHook:        map[hook.GroupHook][]*Entry{},
		selected:      map[hook.GroupHook]*selected{},
		byConfig:      map[string]*config{},
		policies:      map[string]Policies{},
		byHashedLabel: map[string]*Entry{},
		memberOf:      map[string]*Rollout{},
		offers:        map[string]*config{},
		shadowed:      map[string]*Registration{},
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
func (r *Registry) Apply(reg Registration) error { return r.ApplyAll([]Registration{reg})[0] }

// ApplyAll applies registrations one after the other, as Apply does, and makes all of them visible at once. It returns
// the error of each: one that is refused keeps no other from being applied. To apply many together costs little more
// than to apply one of them alone, as every change copies the lists of handlers.
func (r *Registry) ApplyAll(regs []Registration) []error {
	errs := make([]error, len(regs))
	copies := make([]Registration, len(regs))
	for i := range regs {
		if errs[i] = check(&regs[i]); errs[i] == nil {
			copies[i] = clone(regs[i])
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.current.Load().draft()
	for i := range copies {
		if errs[i] == nil {
			errs[i] = d.apply(&copies[i])
		}
	}
	r.store(d)
	return errs
}

// Remove removes the registration of an ExtensionConfig, if it exists, and what stands for it while it is not known.
func (r *Registry) Remove(name string) { r.RemoveAll([]string{name}) }

// RemoveAll is Remove for several ExtensionConfigs, or keys of SetUndiscovered, which is visible at once.
func (r *Registry) RemoveAll(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var d *draft
	for _, name := range names {
		c, registered := r.current.Load().byConfig[name]
		registered = registered && c.registration.InProcess == nil
		if _, shadowed := r.current.Load().shadowed[name]; shadowed {
			registered = true
		}
		if _, awaited := r.current.Load().findUndiscovered(name); registered || awaited {
			if d == nil {
				d = r.current.Load().draft()
			}
			d.put(name, nil)
		}
	}
	if d != nil {
		r.store(d)
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
