// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"github.com/hookgate/hookgate/registry"
)

// discovered is a Registry that remembers the names of the handlers that each ExtensionConfig has, and tells of changes. It
// is safe for concurrent use.
type discovered struct {
	Registry
	changed chan struct{} // holds one value if something has changed that nobody has looked at

	mu       sync.Mutex
	handlers map[string]map[string]bool // by ExtensionConfig
}

func newDiscovered(r Registry) *discovered {
	return &discovered{Registry: r, changed: make(chan struct{}, 1), handlers: map[string]map[string]bool{}}
}

// Apply does what that of the Registry does.
func (d *discovered) Apply(reg registry.Registration) error {
	if err := d.Registry.Apply(reg); err != nil {
		return err
	}
	names := make(map[string]bool, len(reg.Handlers))
	for _, h := range reg.Handlers {
		names[h.Name] = true
	}
	d.mu.Lock()
	d.handlers[reg.Name] = names
	d.mu.Unlock()
	d.tell()
	return nil
}

// Remove does what that of the Registry does.
func (d *discovered) Remove(name string) {
	d.Registry.Remove(name)
	d.mu.Lock()
	delete(d.handlers, name)
	d.mu.Unlock()
	d.tell()
}

func (d *discovered) tell() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// has tells whether an ExtensionConfig has that handler, and whether its handlers are known at all.
func (d *discovered) has(extensionConfig, handler string) (has, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, known := d.handlers[extensionConfig]
	return names[handler], known
}
