// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"sync"
)

// maxLostPaths is how many paths are remembered for one handler. Paths have neither indices nor keys, so that there are as many as
// types have members; more can only come from members that no type knows.
const maxLostPaths = 100

// MorePaths stands in the place of the paths that are too many to be remembered.
const MorePaths = "(more)"

// Losses remembers what conversions could not express, for each handler, by path: so that each is told once, and that it can be
// shown where the handler is registered. It is safe for concurrent use.
type Losses struct {
	mu    sync.RWMutex
	onNew func(extensionConfig string)
	paths map[string]map[string][]string // by ExtensionConfig and handler; slices are replaced, never changed
}

// NewLosses returns a Losses that knows none. onNew, if it is not nil, is called whenever something is new of an
// ExtensionConfig; it must not block, nor call Record.
func NewLosses(onNew func(extensionConfig string)) *Losses {
	return &Losses{onNew: onNew, paths: map[string]map[string][]string{}}
}

// Notify makes onNew be called in place of what NewLosses was given: who wants to know may come after who records.
func (l *Losses) Notify(onNew func(extensionConfig string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onNew = onNew
}

// Record remembers what was lost in a call to a handler, whose name is that of its discovery, and returns which of it is new,
// in the order of lost. Once a handler has lost too much to be remembered, MorePaths is among what is new, once.
func (l *Losses) Record(extensionConfig, handler string, lost []string) (fresh []string) {
	if len(lost) == 0 {
		return nil
	}
	l.mu.RLock()
	known := l.paths[extensionConfig][handler]
	l.mu.RUnlock()
	if news(known, lost) == nil {
		return nil
	}
	l.mu.Lock()
	// Whoever came first has said it.
	known = l.paths[extensionConfig][handler]
	if fresh = news(known, lost); fresh != nil {
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

// news returns what of lost is not in known, which is in order, as far as there is room.
func news(known, lost []string) []string {
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

// Of returns what was lost in calls to the handlers of an ExtensionConfig, by handler, in order. Callers must not change the
// slices.
func (l *Losses) Of(extensionConfig string) map[string][]string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return maps.Clone(l.paths[extensionConfig])
}

// Forget forgets an ExtensionConfig.
func (l *Losses) Forget(extensionConfig string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.paths, extensionConfig)
}
