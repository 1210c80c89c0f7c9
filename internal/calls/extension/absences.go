// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/registry"
)

// absenceAge is for how long an extension is not asked again for a group of hooks that it does not have. The calls that
// want the group may come to another replica.
const absenceAge = time.Hour

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
	since  time.Time
}

// has reports whether an extension with these handlers of Cluster API's hooks is known to lack a group.
func (a *absences) has(url, group string, beside []registry.Handler) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.known[absentGroup{url, group}]
	return ok && time.Since(known.since) < absenceAge && slices.Equal(known.beside, beside)
}

func (a *absences) add(url, group string, beside []registry.Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[absentGroup]absence{}
	}
	a.known[absentGroup{url, group}] = absence{beside: slices.Clone(beside), since: time.Now()}
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
