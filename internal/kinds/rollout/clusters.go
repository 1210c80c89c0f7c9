// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// Readable reports whether all records have been read.
func (e *Engine) Readable() bool { return e.readable() }

// Reconsider decides anew about a Cluster, whose labels or annotations have changed.
func (e *Engine) Reconsider(cluster types.NamespacedName) {
	for _, s := range e.all() {
		s.mu.Lock()
		c, known := s.clusters[cluster]
		if known {
			c.evidence.changed = true
		}
		s.mu.Unlock()
		if known {
			e.write(write{rollout: s.name, cluster: cluster})
		}
	}
}

// Gone forgets a Cluster that was deleted, and returns its records, which have to be deleted: otherwise a new Cluster
// of the same name would be taken for it.
func (e *Engine) Gone(cluster types.NamespacedName) (records []*v1alpha1.ExtensionRolloutRecord) {
	for _, s := range e.all() {
		s.mu.Lock()
		switch c := s.clusters[cluster]; {
		case c == nil:
		case c.record == nil:
			c.evidence.clear()
			delete(s.clusters, cluster)
		default:
			c.isGone = true
			records = append(records, c.record)
		}
		s.mu.Unlock()
	}
	return records
}

// RecordsOf returns the records of a Cluster.
func (e *Engine) RecordsOf(cluster types.NamespacedName) (records []*v1alpha1.ExtensionRolloutRecord) {
	for _, s := range e.all() {
		s.mu.Lock()
		if c := s.clusters[cluster]; c != nil && c.record != nil {
			records = append(records, c.record)
		}
		s.mu.Unlock()
	}
	return records
}

// Recorded returns the Clusters that have records.
func (e *Engine) Recorded() []types.NamespacedName {
	all := map[types.NamespacedName]bool{}
	for _, s := range e.all() {
		s.mu.Lock()
		for name, c := range s.clusters {
			if c.record != nil && name.Name != "" {
				all[name] = true
			}
		}
		s.mu.Unlock()
	}
	return slices.Collect(maps.Keys(all))
}

// Moved returns how many Clusters of an ExtensionRollout have moved, by the ExtensionConfig that they have moved to.
func (e *Engine) Moved(rollout string) map[string]int {
	e.mu.Lock()
	s := e.states[rollout]
	e.mu.Unlock()
	moved := map[string]int{}
	if s == nil {
		return moved
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clusters {
		if c.hasMoved() && !c.isGone {
			moved[c.record.Spec.Candidate]++
		}
	}
	return moved
}
