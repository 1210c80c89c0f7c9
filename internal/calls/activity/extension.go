// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Failure is a call that failed, a handler's answer Failure, or one that has changed although its request has not.
type Failure struct {
	At            time.Time
	CallID        string
	Hook, Handler string
	Outcome       Outcome
	Kind, Message string
	Took          time.Duration
	// Times is how often it has happened in a row, At and CallID are those of the last time.
	Times int
}

// isLike reports whether two failures differ only in when they happened.
func (f *Failure) isLike(other *Failure) bool {
	return f.Hook == other.Hook && f.Handler == other.Handler && f.Outcome == other.Outcome && f.Kind == other.Kind &&
		f.Message == other.Message
}

// Discovery is what came of asking an extension for its handlers.
type Discovery struct {
	At time.Time
	// Since is when the extension began to fail if it fails, and to answer if it answers.
	Since time.Time
	// URL is the one of the ExtensionConfig, which is not registered if no discovery has succeeded.
	URL     string
	Outcome string
	Message string // of the error; empty if there is none
	// HealthUnchecked reports that the gRPC server of the extension has said that it has no health service.
	HealthUnchecked bool
}

// FailureLog keeps the last failures of an extension, equal ones in a row as one. Its zero value has none. It is safe
// for concurrent use.
type FailureLog struct {
	mu       sync.Mutex
	failures []Failure // a ring; next is the oldest once it is full
	next     int
}

// Add adds a failure.
func (l *FailureLog) Add(f Failure) {
	f.Message, f.Times = redact.Bounded(f.Message, limits.FailureBytes), 1
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.failures); n > 0 {
		if last := &l.failures[(l.next+n-1)%n]; last.isLike(&f) {
			f.Times += last.Times
			*last = f
			return
		}
	}
	if len(l.failures) < limits.Failures {
		l.failures = append(l.failures, f)
		return
	}
	l.failures[l.next] = f
	l.next = (l.next + 1) % limits.Failures
}

// List returns the failures, newest first.
func (l *FailureLog) List() []Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	failures := slices.Concat(l.failures[l.next:], l.failures[:l.next])
	slices.Reverse(failures)
	return failures
}

// Discoveries keeps the last discovery of each extension, by the name of its ExtensionConfig. Its zero value has none.
// It is safe for concurrent use.
type Discoveries struct {
	mu   sync.RWMutex
	last map[string]Discovery
}

// Record records a discovery. Its Since is set from the one before.
func (d *Discoveries) Record(extensionConfig string, next Discovery) {
	next.Message, next.Since = redact.Bounded(next.Message, limits.FailureBytes), next.At
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[string]Discovery{}
	}
	before, known := d.last[extensionConfig]
	if known && (before.Message == "") == (next.Message == "") && before.URL == next.URL {
		next.Since = before.Since
	}
	d.last[extensionConfig] = next
}

// Last returns the last discovery of each extension.
func (d *Discoveries) Last() map[string]Discovery {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return maps.Clone(d.last)
}

// Forget forgets an ExtensionConfig that is gone.
func (d *Discoveries) Forget(extensionConfig string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, extensionConfig)
}
