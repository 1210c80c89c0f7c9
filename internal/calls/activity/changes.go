// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Change is something that may explain why calls are different from what they were.
type Change struct {
	At   time.Time
	Text string
	// Of are the extensions that it is about; none means all.
	Of []string
}

// Changes keeps the last changes. Its zero value has none. It is safe for concurrent use.
type Changes struct {
	mu      sync.Mutex
	changes []Change // a ring; next is the oldest once it is full
	next    int
}

// Add adds a change.
func (c *Changes) Add(change Change) {
	change.Text = text.Cut(change.Text, limits.ChangeBytes)
	change.Of = slices.Clone(change.Of[:min(len(change.Of), limits.ChangeExtensions)])
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.changes) < limits.Changes {
		c.changes = append(c.changes, change)
		return
	}
	c.changes[c.next] = change
	c.next = (c.next + 1) % limits.Changes
}

// Since returns the changes from a time on that are about an extension, or all if it is empty, oldest first.
func (c *Changes) Since(begin time.Time, extension string) (found []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range slices.Concat(c.changes[c.next:], c.changes[:c.next]) {
		if about := extension == "" || len(change.Of) == 0 || slices.Contains(change.Of, extension); about &&
			!change.At.Before(begin) {
			found = append(found, change)
		}
	}
	return found
}
