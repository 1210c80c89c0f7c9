// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify coalesces notifications: any number of them, sent while no goroutine receives, is received as one. All
// types are safe for concurrent use, and no notification blocks.
package notify

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Signal says that something has changed. Use NewSignal.
type Signal struct{ c chan struct{} }

// NewSignal returns a Signal without a pending notification.
func NewSignal() *Signal { return &Signal{c: make(chan struct{}, 1)} }

// Notify makes C ready to receive from, if it is not ready already.
func (s *Signal) Notify() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C returns the channel from which one value can be received after one or more calls of Notify.
func (s *Signal) C() <-chan struct{} { return s.c }

// Set says which keys have changed. Use NewSet.
type Set[K cmp.Ordered] struct {
	signal *Signal

	mu   sync.Mutex
	keys map[K]struct{}
}

// NewSet returns an empty Set.
func NewSet[K cmp.Ordered]() *Set[K] { return &Set[K]{signal: NewSignal(), keys: map[K]struct{}{}} }

// Add adds a key and makes C ready to receive from.
func (s *Set[K]) Add(key K) {
	s.mu.Lock()
	s.keys[key] = struct{}{}
	s.mu.Unlock()
	s.signal.Notify()
}

// C returns the channel from which one value can be received after one or more calls of Add.
func (s *Set[K]) C() <-chan struct{} { return s.signal.C() }

// Take returns the keys that were added since the last call, in order, and removes them.
func (s *Set[K]) Take() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Sorted(maps.Keys(s.keys))
	clear(s.keys)
	return keys
}
