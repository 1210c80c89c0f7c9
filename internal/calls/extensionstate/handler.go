// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionstate

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// Handler is what calls have shown about one handler: its circuit, and one for each Cluster whose last calls to it
// failed. The failures of one Cluster, whose objects the handler may not get on with, do not open the handler's
// circuit.
type Handler struct {
	circuit.Circuit

	remembers atomic.Bool // clusters is not empty

	mu       sync.Mutex
	clusters map[string]*circuit.Circuit // by namespace/name
	row      row
}

// row is what is known of the last failures, which are of one Cluster.
type row struct {
	begun   bool   // there was one
	cluster string // empty for calls that are about none
	counted bool   // one of them has been weighed
	pending bool   // one that was not is, as soon as another Cluster's call fails
}

// Remembers reports whether Cluster may return a circuit.
func (h *Handler) Remembers() bool { return h.remembers.Load() }

// Cluster returns the circuit of a Cluster whose last call failed, or nil.
func (h *Handler) Cluster(name string) *circuit.Circuit {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[name]
	if c != nil && isOld(c) {
		h.forget(name)
		return nil
	}
	return c
}

// Failing returns the circuit of a Cluster whose call has failed. It returns nil if the Cluster has none, and as many
// others as are remembered are refused.
func (h *Handler) Failing(name string) *circuit.Circuit {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.clusters[name]; c != nil {
		return c
	}
	if !h.makeRoom() {
		return nil
	}
	if h.clusters == nil {
		h.clusters = map[string]*circuit.Circuit{}
	}
	c := &circuit.Circuit{}
	h.clusters[name] = c
	h.remembers.Store(true)
	return c
}

// makeRoom forgets the Clusters that are old, and if there is still no room for another, the one that is not refused
// and failed first. It reports whether there is room.
func (h *Handler) makeRoom() bool {
	first, at := "", time.Time{}
	for name, c := range h.clusters {
		switch s := c.Status(); {
		case isOld(c):
			h.forget(name)
		case s.State == circuit.Closed && (first == "" || s.Failed.Before(at)):
			first, at = name, s.Failed
		}
	}
	if len(h.clusters) < limits.FailingClusters {
		return true
	}
	h.forget(first)
	return first != ""
}

// isOld reports whether a Cluster is to be forgotten.
func isOld(c *circuit.Circuit) bool {
	s := c.Status()
	return s.State != circuit.Open && !s.Failed.IsZero() && time.Since(s.Failed) >= limits.FailingClusterTime
}

// Succeeded notes that a call succeeded, and forgets its Cluster if that is not refused.
func (h *Handler) Succeeded(cluster string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row.counted, h.row.pending = false, false
	if c := h.clusters[cluster]; c != nil && c.Status().State == circuit.Closed {
		h.forget(cluster)
	}
}

// Refused returns the Clusters whose calls are refused, in order.
func (h *Handler) Refused() []string {
	if !h.Remembers() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var refused []string
	for name, c := range h.clusters {
		if c.Status().State != circuit.Closed && !isOld(c) {
			refused = append(refused, name)
		}
	}
	slices.Sort(refused)
	return refused
}

// answered lets the next call, and that of each Cluster, pass as a probe.
func (h *Handler) answered() {
	h.Answered()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.clusters {
		c.Answered()
	}
}

func (h *Handler) forget(cluster string) {
	delete(h.clusters, cluster)
	h.remembers.Store(len(h.clusters) > 0)
}

// Weigh returns how many failures of the handler the failure of a Cluster's call is. While no other Cluster's call
// fails, it is none, and later one for each time that another Cluster's failed before: no Cluster counts for more than
// all others together and one. A call that is about no Cluster counts whatever failed before.
func (h *Handler) Weigh(cluster string) (failures int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.row
	if cluster != "" && (!r.begun || r.cluster == cluster) {
		r.cluster, r.begun, r.pending = cluster, true, !r.counted
		return 0
	}
	failures = 1
	if r.pending {
		failures++
	}
	*r = row{cluster: cluster, begun: true, counted: true}
	return failures
}
