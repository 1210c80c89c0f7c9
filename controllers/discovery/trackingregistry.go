// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"sync"

	"github.com/hookgate/hookgate/registry"
)

// TrackingRegistry is a Registry that remembers which handlers each ExtensionConfig has, and tells of changes: what policies are for
// comes and goes. It is safe for concurrent use.
type TrackingRegistry struct {
	Registry
	changed chan struct{}

	mu       sync.Mutex
	handlers map[string]map[string]bool // by ExtensionConfig
}

// NewTrackingRegistry returns a TrackingRegistry in front of r, which has nothing as yet.
func NewTrackingRegistry(r Registry) *TrackingRegistry {
	return &TrackingRegistry{Registry: r, changed: make(chan struct{}, 1), handlers: map[string]map[string]bool{}}
}

// Changed holds one value if something has changed that nobody has looked at.
func (s *TrackingRegistry) Changed() <-chan struct{} { return s.changed }

// Apply does what that of the Registry does.
func (s *TrackingRegistry) Apply(reg registry.Registration) error {
	if err := s.Registry.Apply(reg); err != nil {
		return err
	}
	names := make(map[string]bool, len(reg.Handlers))
	for _, h := range reg.Handlers {
		names[h.Name] = true
	}
	s.mu.Lock()
	s.handlers[reg.Name] = names
	s.mu.Unlock()
	s.tell()
	return nil
}

// Remove does what that of the Registry does.
func (s *TrackingRegistry) Remove(name string) {
	s.Registry.Remove(name)
	s.mu.Lock()
	delete(s.handlers, name)
	s.mu.Unlock()
	s.tell()
}

func (s *TrackingRegistry) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// has tells whether an ExtensionConfig has that handler, and whether its handlers are known at all.
func (s *TrackingRegistry) has(extensionConfig, handler string) (has, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, known := s.handlers[extensionConfig]
	return names[handler], known
}
