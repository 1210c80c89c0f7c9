// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensionstate holds what calls have shown about each extension: its circuits, its calls in flight, and its
// last failures.
package extensionstate

import (
	"sync"
	"sync/atomic"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/answercache"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/registry"
)

// minStates is the number of states of extensions that are gone which are always kept, so that a small registry is
// not searched for them all the time.
const minStates = 16

// States holds what calls have shown about each registered extension, in this process: its circuit and those of its
// handlers, the calls in flight, the last failures, and the answers that are kept. It follows the registry by itself:
// an extension that calls another address begins anew, and one that is gone is forgotten. It is safe for concurrent
// use.
type States struct {
	snapshots registry.Snapshots
	// Answers are those that are kept.
	Answers *answercache.Cache

	mu     sync.RWMutex
	states map[extensionKey]*State
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

// State is the state of one extension.
type State struct {
	Circuit  circuit.Circuit // Of its server
	Gate     admission.Gate
	Failures activity.FailureLog
	broke    atomic.Pointer[broken]

	mu       sync.RWMutex
	handlers map[string]*Handler // by their names
}

// broken is the call during which a connection broke last.
type broken struct{ handler, cluster string }

// Handler returns the state of a handler.
func (s *State) Handler(e *registry.Entry) *Handler {
	s.mu.RLock()
	c := s.handlers[e.Name]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.handlers[e.Name]; c != nil {
		return c // another call was first
	}
	if s.handlers == nil || len(s.handlers) >= 2*len(e.Registration.Handlers)+minStates {
		s.handlers = map[string]*Handler{} // an extension may name its handlers differently each time
	}
	c = &Handler{}
	s.handlers[e.Name] = c
	return c
}

// KnownHandler returns the state of a handler, or nil if it was never called.
func (s *State) KnownHandler(name string) *Handler {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.handlers[name]
}

// HandlerCircuit returns the status of the circuit of a handler.
func (s *State) HandlerCircuit(name string) circuit.Status {
	if c := s.KnownHandler(name); c != nil {
		return c.Status()
	}
	return circuit.Status{}
}

// RefusedClusters returns the Clusters whose calls to a handler are refused because theirs fail, in order.
func (s *State) RefusedClusters(handler string) []string {
	if c := s.KnownHandler(handler); c != nil {
		return c.Refused()
	}
	return nil
}

// Broke keeps that a connection broke during a call of a handler, about a Cluster or none, and reports whether the one
// before it broke during a call of another handler, and not for the same Cluster.
func (s *State) Broke(handler, cluster string) (another bool) {
	last := s.broke.Swap(&broken{handler, cluster})
	return last != nil && last.handler != handler && (cluster == "" || last.cluster != cluster)
}

// Answered lets the next call to each handler pass as a probe, and that of each Cluster.
func (s *State) Answered() {
	s.Circuit.Answered()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.handlers {
		c.answered()
	}
}

// New returns States for the registrations of a registry.
func New(s registry.Snapshots) *States {
	return &States{
		snapshots: s, Answers: answercache.New(limits.CachedBytes), states: map[extensionKey]*State{},
	}
}

// Notify sets the function that is called when the circuit of an extension, or of a handler of it, opens or closes.
// It must neither block nor call methods of the States.
func (x *States) Notify(changed func(extensionConfig string)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notify = changed
}

// Answered records that an extension has answered its discovery. If its circuit is open, or those of handlers, the next
// call may pass.
func (x *States) Answered(extensionConfig string) {
	if s := x.Known(extensionConfig); s != nil {
		s.Answered()
	}
}

// Back closes the circuit of an extension whose server is there again, and lets the next call to each handler pass as a
// probe. It reports whether the circuit was not closed.
func (x *States) Back(extensionConfig string) (status circuit.Status, closed bool) {
	s := x.Known(extensionConfig)
	if s == nil {
		return circuit.Status{}, false
	}
	if closed = s.Circuit.Close(); closed {
		x.Changed(extensionConfig)
	}
	s.Answered()
	return s.Circuit.Status(), closed
}

// Registers reports whether an extension is registered.
func (x *States) Registers(extensionConfig string) bool {
	_, ok := x.snapshots.Snapshot().Registration(extensionConfig)
	return ok
}

// Circuit returns the status of the circuit of an extension. If that is closed, and those of handlers are not, it
// returns the status of the one that has been open for longest, and the name of its handler. An extension that is not
// registered, or was never called, has closed ones.
func (x *States) Circuit(extensionConfig string) (status circuit.Status, handler string) {
	s := x.Known(extensionConfig)
	if s == nil {
		return circuit.Status{}, ""
	}
	if status = s.Circuit.Status(); status.State != circuit.Closed {
		return status, ""
	}
	for _, e := range x.snapshots.Snapshot().HandlersOf(extensionConfig) {
		if c := s.HandlerCircuit(e.Name); c.State != circuit.Closed && (handler == "" || c.Since.Before(status.Since)) {
			status, handler = c, e.Name
		}
	}
	return status, handler
}

// Known returns the state of a registered extension, or nil if it has none.
func (x *States) Known(extensionConfig string) *State {
	r, ok := x.snapshots.Snapshot().Registration(extensionConfig)
	if !ok {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.states[keyOf(r)]
}

// Of returns the state of the extension of a handler.
func (x *States) Of(e *registry.Entry) *State {
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
func (x *States) add(key extensionKey) *State {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.states[key]; s != nil {
		return s // another call was first
	}
	s := &State{}
	snapshot := x.snapshots.Snapshot()
	if !isRegistered(snapshot, key) {
		return s
	}
	if len(x.states) >= 2*len(snapshot.Registrations())+minStates {
		for old := range x.states {
			if !isRegistered(snapshot, old) {
				delete(x.states, old)
			}
		}
	}
	x.states[key] = s
	return s
}

// Changed calls the function of Notify.
func (x *States) Changed(extensionConfig string) {
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

// defaultLimits and defaultCircuit are for extensions without a policy.
var (
	defaultLimits  = admission.Default()
	defaultCircuit = circuit.Default()
)

// LimitsOf returns the limits of a handler's extension.
func LimitsOf(e *registry.Entry) *admission.Limits {
	if p := e.OfExtension; p != nil && p.Limits != nil {
		return p.Limits
	}
	return &defaultLimits
}

// CircuitOf returns the settings of the circuits of a handler's extension.
func CircuitOf(e *registry.Entry) *circuit.Settings {
	if p := e.OfExtension; p != nil && p.Circuit != nil {
		return p.Circuit
	}
	return &defaultCircuit
}
