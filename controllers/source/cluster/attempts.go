// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"
	"time"

	"github.com/hookgate/hookgate/controllers/discovery"
)

// attempts counts, for each ExtensionConfig, how often it has failed in a row. It is safe for concurrent use.
type attempts struct {
	backoff discovery.Backoff
	mu      sync.Mutex
	byName  map[string]*attempt
}

type attempt struct {
	generation int64
	delays     *discovery.Delays
}

// failed returns how long to wait before the next attempt. An ExtensionConfig that was changed starts over.
func (a *attempts) failed(name string, generation int64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.byName[name]
	if at == nil || at.generation != generation {
		at = &attempt{generation: generation, delays: a.backoff.Delays()}
		if a.byName == nil {
			a.byName = map[string]*attempt{}
		}
		a.byName[name] = at
	}
	return at.delays.Next()
}

func (a *attempts) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName, name)
}
