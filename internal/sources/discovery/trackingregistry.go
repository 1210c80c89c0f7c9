// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"sync"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/registry"
)

// TrackingRegistry is a Registry that remembers the handlers of each ExtensionConfig and signals changes, because the
// targets of policies come and go. It is safe for concurrent use.
type TrackingRegistry struct {
	Registry
	changed *notify.Signal

	mu       sync.Mutex
	handlers map[string]map[string]hook.GroupHook // by ExtensionConfig and name
}

// NewTrackingRegistry returns a TrackingRegistry in front of r, which must be empty.
func NewTrackingRegistry(r Registry) *TrackingRegistry {
	return &TrackingRegistry{Registry: r, changed: notify.NewSignal(), handlers: map[string]map[string]hook.GroupHook{}}
}

// Changed returns a channel that has a value if the handlers may have changed since the last receive.
func (r *TrackingRegistry) Changed() <-chan struct{} { return r.changed.C() }

// ApplyAll implements Registry.
func (r *TrackingRegistry) ApplyAll(regs []registry.Registration) []error {
	errs := r.Registry.ApplyAll(regs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range regs {
		if errs[i] != nil {
			continue
		}
		r.handlers[regs[i].Name] = hooksOf(&regs[i])
		r.changed.Notify()
	}
	return errs
}

// RemoveAll implements Registry.
func (r *TrackingRegistry) RemoveAll(names []string) {
	r.Registry.RemoveAll(names)
	r.mu.Lock()
	for _, name := range names {
		delete(r.handlers, name)
	}
	r.mu.Unlock()
	r.changed.Notify()
}

// HooksOf returns the hooks of an ExtensionConfig's handlers by their names, and whether they are known at all; of a
// registration without a server if that has the name. Callers must not change the map.
func (r *TrackingRegistry) HooksOf(name string) (handlers map[string]hook.GroupHook, known bool) {
	if reg, ok := r.Snapshot().Registration(name); ok && reg.InProcess != nil {
		return hooksOf(reg), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	handlers, known = r.handlers[name]
	return handlers, known
}

// hooksOf returns the hooks of handlers by their names.
func hooksOf(reg *registry.Registration) map[string]hook.GroupHook {
	handlers := make(map[string]hook.GroupHook, len(reg.Handlers))
	for _, h := range reg.Handlers {
		handlers[h.Name] = h.Hook.GroupHook()
	}
	return handlers
}
