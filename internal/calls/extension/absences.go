// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/registry"
)

const (
	// absenceAge is for how long an extension is not asked again for a group of hooks that it does not have. The calls
	// that want the group may come to another replica.
	absenceAge = time.Hour
	// absenceProof is for how long every discovery has to find that a group is absent before that is believed. While an
	// extension is upgraded, a Pod of the old version may answer for one group, and one of the new version for another.
	absenceProof = 5 * time.Minute
)

// absences remembers which extensions have no handlers of a group of hooks, so that not every discovery asks each of
// them for infrastructure. Its zero value remembers none. It is safe for concurrent use.
type absences struct {
	mu    sync.Mutex
	known map[absentGroup]absence
}

// absentGroup is a group of hooks that the extension at a URL does not have.
type absentGroup struct{ url, group string }

type absence struct {
	beside []registry.Handler // of Cluster API's hooks: another answer is that of another version of the extension
	first  time.Time          // when the group was absent, and in all discoveries from then on
	last   time.Time
}

// has reports whether an extension with these handlers of Cluster API's hooks is known to lack a group.
func (a *absences) has(url, group string, beside []registry.Handler) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[absentGroup{url, group}]
	return ok && known.last.Sub(known.first) >= absenceProof && time.Since(known.last) < absenceAge &&
		slices.Equal(known.beside, beside)
}

// add remembers that an extension with these handlers of Cluster API's hooks has just lacked a group.
func (a *absences) add(url, group string, beside []registry.Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[absentGroup]absence{}
	}
	key, now := absentGroup{url, group}, time.Now()
	known, ok := a.known[key]
	if !ok || !slices.Equal(known.beside, beside) {
		known = absence{beside: slices.Clone(beside), first: now}
	}
	known.last = now
	a.known[key] = known
}

// remove forgets that an extension lacked a group, because it has answered for it.
func (a *absences) remove(url, group string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, absentGroup{url, group})
}

// want forgets who does not have a group, because a call wants a handler of it that is not known.
func (a *absences) want(group string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for known := range a.known {
		if known.group == group {
			delete(a.known, known)
		}
	}
}

// retain forgets all extensions but these.
func (a *absences) retain(ccs []registry.ClientConfig) {
	used := make(map[string]bool, len(ccs))
	for i := range ccs {
		used[ccs[i].URL] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for known := range a.known {
		if !used[known.url] {
			delete(a.known, known)
		}
	}
}
