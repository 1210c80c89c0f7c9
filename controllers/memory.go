// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/sources/discovery"
)

// memory is the state of a replica for one ExtensionConfig between attempts.
type memory struct {
	delays     *discovery.Delays // between failures in a row; nil after a success
	generation int64             // the one that failed

	logged map[string]string // the last error by log message; none if all is well

	version string    // the resource version after the last write of this replica
	written time.Time // when that was

	losses lossBasis

	// led is the last term in which the ExtensionConfig was reconciled by a leader, or is about to be. It is safe for
	// concurrent use, as no other member is.
	led atomic.Pointer[term]
}

func (r *reconciler) memoryOf(extensionConfig string) *memory {
	m, _ := r.memories.LoadOrStore(extensionConfig, &memory{logged: map[string]string{}})
	return m.(*memory)
}

// failed returns the time to wait before the next attempt. An ExtensionConfig that has changed starts over.
func (m *memory) failed(generation int64, b discovery.Backoff) time.Duration {
	if m.delays == nil || m.generation != generation {
		m.delays, m.generation = b.Delays(), generation
	}
	return m.delays.Next()
}

func (m *memory) succeeded() { m.delays = nil }

// isNew reports whether err is another error than the last one with this message. It forgets that one if err is nil.
func (m *memory) isNew(message string, err error) bool {
	if err == nil {
		delete(m.logged, message)
		return false
	}
	before := m.logged[message]
	m.logged[message] = err.Error()
	return before != err.Error()
}

func (m *memory) wrote(config *runtimev1.ExtensionConfig) {
	m.version, m.written = config.ResourceVersion, time.Now()
}

// outdated reports whether config, from the cache, is older than the last write of this replica, so that a decision
// based on it would only cause a conflict. It does not wait for a cache that lags for longer than lag, or for an API
// server restored from a backup.
func (m *memory) outdated(config *runtimev1.ExtensionConfig, lag time.Duration) bool {
	order, err := resourceversion.CompareResourceVersion(config.ResourceVersion, m.version)
	return err == nil && order < 0 && time.Since(m.written) < lag
}
