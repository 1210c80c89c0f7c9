// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"sync"
)

// maxLostPaths is how many paths are recorded for one handler. Paths have neither indices nor keys, so that there are
// only as many as types have members; more can only come from members that the types do not know.
const maxLostPaths = 100

// MorePaths represents the paths beyond the limit of recorded paths.
const MorePaths = "(more)"

// Losses records the paths that conversions could not express, for each handler, so that each is reported once and
// can be shown where the handler is registered. It is safe for concurrent use.
type Losses struct {
	mu    sync.RWMutex
	onNew func(extensionConfig string)
	paths map[string]map[string][]string // by ExtensionConfig and handler; slices are replaced, never changed
}

// NewLosses returns an empty Losses. It calls onNew, unless that is nil, when an ExtensionConfig has a new loss;
// onNew must neither block nor call Record.
func NewLosses(onNew func(extensionConfig string)) *Losses {
	return &Losses{onNew: onNew, paths: map[string]map[string][]string{}}
}

// Notify replaces the function that NewLosses was given, for a receiver that is created after the Losses.
func (l *Losses) Notify(onNew func(extensionConfig string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onNew = onNew
}

// Record records the losses in a call to a handler, under its name from discovery, and returns the new paths in the
// order of lost. They include MorePaths when the handler first exceeds the limit of paths.
func (l *Losses) Record(extensionConfig, handler string, lost []string) (fresh []string) {
	if len(lost) == 0 {
		return nil
	}
	l.mu.RLock()
	known := l.paths[extensionConfig][handler]
	l.mu.RUnlock()
	if unrecorded(known, lost) == nil {
		return nil
	}
	l.mu.Lock()
	// Another call may have recorded it in the meantime.
	known = l.paths[extensionConfig][handler]
	if fresh = unrecorded(known, lost); fresh != nil {
		handlers := l.paths[extensionConfig]
		if handlers == nil {
			handlers = map[string][]string{}
			l.paths[extensionConfig] = handlers
		}
		handlers[handler] = slices.Sorted(slices.Values(slices.Concat(known, fresh)))
	}
	onNew := l.onNew
	l.mu.Unlock()
	if fresh != nil && onNew != nil {
		onNew(extensionConfig)
	}
	return fresh
}

// unrecorded returns the paths of lost that are not in known, which is sorted, as far as there is room.
func unrecorded(known, lost []string) []string {
	var fresh []string
	for _, path := range lost {
		if _, ok := slices.BinarySearch(known, path); ok || slices.Contains(fresh, path) {
			continue
		}
		if len(known)+len(fresh) < maxLostPaths {
			fresh = append(fresh, path)
		} else if !slices.Contains(known, MorePaths) && !slices.Contains(fresh, MorePaths) {
			fresh = append(fresh, MorePaths)
		}
	}
	return fresh
}

// Of returns the recorded paths of an ExtensionConfig by handler, sorted. Callers must not change the slices.
func (l *Losses) Of(extensionConfig string) map[string][]string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return maps.Clone(l.paths[extensionConfig])
}

// Forget removes the records of an ExtensionConfig.
func (l *Losses) Forget(extensionConfig string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.paths, extensionConfig)
}

// lossSet is a set of paths. Its zero value is empty.
type lossSet struct {
	paths map[string]bool
}

func (l *lossSet) add(path string) {
	if l.paths == nil {
		l.paths = map[string]bool{}
	}
	l.paths[path] = true
}

// sorted returns the paths, sorted, or nil if there are none.
func (l *lossSet) sorted() []string { return slices.Sorted(maps.Keys(l.paths)) }
