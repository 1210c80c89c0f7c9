// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/admission"
	"github.com/hookgate/hookgate/internal/answercache"
	"github.com/hookgate/hookgate/internal/circuit"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/registry"
)

// spareStates is the number of states of extensions that are gone which are always kept, so that a small registry is
// not searched for them all the time.
const spareStates = 16

// Extensions holds what calls have shown about each registered extension, in this process: its circuit, the calls in
// flight, the last failures, and the answers that are kept. It follows the registry by itself: an extension that calls
// another address begins anew, and one that is gone is forgotten. It is safe for concurrent use.
type Extensions struct {
	snapshots Snapshots
	answers   *answercache.Cache

	mu     sync.RWMutex
	states map[extensionKey]*extensionState
	notify func(extensionConfig string)
}

// extensionKey identifies a registration for as long as it calls the same server.
type extensionKey struct {
	extensionConfig string
	protocol        registry.Protocol
	url             string
}

func keyOf(r *registry.Registration) extensionKey {
	return extensionKey{extensionConfig: r.Name, protocol: r.ClientConfig.Protocol, url: r.ClientConfig.URL}
}

// extensionState is the state of one extension.
type extensionState struct {
	circuit  circuit.Circuit
	gate     admission.Gate
	failures activity.FailureLog
}

// NewExtensions returns an Extensions for the registrations of a registry.
func NewExtensions(s Snapshots) *Extensions {
	return &Extensions{
		snapshots: s, answers: answercache.New(limits.CachedBytes), states: map[extensionKey]*extensionState{},
	}
}

// Notify sets the function that is called when the circuit of an extension opens or closes. It must neither block nor
// call methods of the Extensions.
func (x *Extensions) Notify(changed func(extensionConfig string)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notify = changed
}

// Answered records that an extension has answered its discovery. If its circuit is open, the next call may pass.
func (x *Extensions) Answered(extensionConfig string) {
	if s := x.known(extensionConfig); s != nil {
		s.circuit.Answered()
	}
}

// Circuit returns the status of the circuit of an extension. An extension that is not registered, or was never called,
// has a closed one.
func (x *Extensions) Circuit(extensionConfig string) circuit.Status {
	if s := x.known(extensionConfig); s != nil {
		return s.circuit.Status()
	}
	return circuit.Status{}
}

// known returns the state of a registered extension, or nil if it has none.
func (x *Extensions) known(extensionConfig string) *extensionState {
	r, ok := x.snapshots.Snapshot().Registration(extensionConfig)
	if !ok {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.states[keyOf(r)]
}

// of returns the state of the extension of a handler.
func (x *Extensions) of(e *registry.Entry) *extensionState {
	key := keyOf(e.Registration)
	x.mu.RLock()
	s := x.states[key]
	x.mu.RUnlock()
	if s != nil {
		return s
	}
	return x.add(key)
}

// add returns the state of an extension that is called for the first time. The state is not kept if the call is one of
// an older snapshot, whose extension is gone.
func (x *Extensions) add(key extensionKey) *extensionState {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.states[key]; s != nil {
		return s // another call was first
	}
	s := &extensionState{}
	snapshot := x.snapshots.Snapshot()
	if !isRegistered(snapshot, key) {
		return s
	}
	if len(x.states) >= 2*len(snapshot.Registrations())+spareStates {
		for old := range x.states {
			if !isRegistered(snapshot, old) {
				delete(x.states, old)
			}
		}
	}
	x.states[key] = s
	return s
}

// changed calls the function of Notify.
func (x *Extensions) changed(extensionConfig string) {
	x.mu.RLock()
	notify := x.notify
	x.mu.RUnlock()
	if notify != nil {
		notify(extensionConfig)
	}
}

// isRegistered reports whether an extension is registered and calls the same server as before.
func isRegistered(s *registry.Snapshot, key extensionKey) bool {
	r, ok := s.Registration(key.extensionConfig)
	return ok && keyOf(r) == key
}
