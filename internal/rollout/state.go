// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/registry"
)

// state is what is known of an ExtensionRollout, whatever its spec says.
type state struct {
	engine *Engine
	name   string

	mu       sync.Mutex
	current  *Rollout // nil while it is not in effect
	clusters map[types.NamespacedName]*cluster
	aborted  *v1alpha1.ExtensionRolloutRecord
	calls    [limits.RolloutCalls]bool // of the candidate: whether they failed
	called   int
}

// cluster is what is known of a Cluster.
type cluster struct {
	record *v1alpha1.ExtensionRolloutRecord // what is stored; nil for nothing
	isOld  bool                             // it was there before anything was known of it
	isGone bool                             // it was deleted, and its record is to be

	// What comparisons with the current candidate have shown.
	handlers map[string]*handler
	labels   labels.Set // as the last call had them
	called   time.Time  // the last call
	settled  bool       // all handlers that are called for the Cluster have been compared
}

// handler is what comparisons of the answers of one handler have shown.
type handler struct {
	waits    bool
	missed   bool               // a call came while another one waited, and was not compared
	compared *registry.Compared // nil if the last call has not been compared
	rounds   int                // comparisons without an error
}

// of returns what is known of a Cluster; if it is not known and there is room, it is added. The mutex is held.
func (s *state) of(name types.NamespacedName) *cluster {
	c := s.clusters[name]
	if c == nil && len(s.clusters) < limits.RolloutClusters {
		c = &cluster{handlers: map[string]*handler{}}
		s.clusters[name] = c
	}
	return c
}

// movedTo returns the ExtensionConfig that a Cluster has moved to, or nothing, and reports whether anything is known of
// the Cluster.
func (s *state) movedTo(of types.NamespacedName) (to string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[of]
	if c == nil {
		return "", false
	}
	if c.hasMoved() {
		return c.record.Spec.Candidate, true
	}
	return "", c.record != nil || c.isOld
}

func (c *cluster) hasMoved() bool {
	return c.record != nil && c.record.Spec.State == v1alpha1.RolloutStateMoved
}

// notNew notes that a Cluster is not new.
func (s *state) notNew(of types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.of(of); c != nil {
		c.isOld = true
	}
}

// abortedFor returns the record that no more Clusters move to a candidate, or nil. The mutex is held.
func (s *state) abortedFor(candidate string) *v1alpha1.ExtensionRolloutRecord {
	if s.aborted == nil || s.aborted.Spec.Candidate != candidate {
		return nil
	}
	return s.aborted
}

func (s *state) isAborted(candidate string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abortedFor(candidate) != nil
}

// use makes r, which may be nil, the rollout in effect.
func (s *state) use(r *Rollout) {
	s.mu.Lock()
	before := s.current
	s.current = r
	if before == r {
		s.mu.Unlock()
		return
	}
	if before == nil || r == nil || before.candidate != r.candidate || before.stable != r.stable {
		s.called = 0
		for _, c := range s.clusters {
			c.handlers, c.settled = map[string]*handler{}, false
		}
	}
	all := slices.Collect(maps.Keys(s.clusters))
	s.mu.Unlock()
	for _, of := range all {
		s.engine.write(write{rollout: s.name, cluster: of})
	}
}

// set takes a record as it is stored.
func (s *state) set(record *v1alpha1.ExtensionRolloutRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if record.Spec.State == v1alpha1.RolloutStateAborted {
		s.aborted = record
		return
	}
	name := clusterOf(record)
	c := s.of(name)
	if c == nil { // never leave out what says that a Cluster has moved
		c = &cluster{handlers: map[string]*handler{}}
		s.clusters[name] = c
	}
	if isOlder(record, c.record) {
		return
	}
	c.isGone = c.isGone && c.record != nil && c.record.UID == record.UID
	c.record = record
}

// isOlder reports whether a record was stored before another one, which may be nil: what this process has written, also
// a record that was deleted since, may come back from a watch after what it wrote later.
func isOlder(r, than *v1alpha1.ExtensionRolloutRecord) bool {
	if than == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(r.ResourceVersion, than.ResourceVersion)
	return err == nil && order < 0
}

// remove forgets a record that is not stored any more.
func (s *state) remove(record *v1alpha1.ExtensionRolloutRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if record.Spec.State == v1alpha1.RolloutStateAborted {
		s.aborted, s.called = nil, 0
		return
	}
	if c := s.clusters[clusterOf(record)]; c != nil && c.record != nil && c.record.UID == record.UID {
		if c.hasMoved() { // back: what was compared before counts no more
			c.handlers, c.settled = map[string]*handler{}, false
		}
		c.record, c.isOld = nil, true
		if c.isGone {
			delete(s.clusters, clusterOf(record))
		}
	}
}

// begin notes a call about a Cluster, and reports whether its answer is to be compared.
func (s *state) begin(r *Rollout, of types.NamespacedName, name string, labels labels.Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(of)
	if c == nil || s.current != r {
		return false
	}
	c.called, c.labels = time.Now(), labels
	h := c.handlers[name]
	if h == nil {
		h = &handler{}
		c.handlers[name] = h
		c.settled = false
	}
	if h.waits {
		h.missed = true
		return false
	}
	h.waits = true
	return true
}

// end takes what came of a comparison, nil if there was none, and decides. Equal answers to an earlier call say nothing
// about the last one, if that was not compared.
func (s *state) end(of *comparison, compared *registry.Compared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[of.cluster]
	if c == nil || s.current == nil || s.current.candidate != of.rollout.candidate ||
		s.current.stable != of.rollout.stable || c.handlers[of.handler] == nil {
		return
	}
	h := c.handlers[of.handler]
	if compared != nil {
		h.compared = compared
	}
	if isEqual := h.compared != nil && h.compared.Err == nil && len(h.compared.Differences) == 0; isEqual &&
		(compared == nil || h.missed) {
		h.compared, c.settled = nil, false
	}
	h.waits, h.missed = false, false
	if h.compared == nil || compared == nil {
		return
	}
	if compared.Err == nil {
		h.rounds++
	}
	if h.rounds > 1 {
		c.settled = c.allCompared()
	}
	s.engine.write(write{rollout: s.name, cluster: of.cluster})
}

// allCompared reports whether the last comparison of each handler has ended, without an error.
func (c *cluster) allCompared() bool {
	for _, h := range c.handlers {
		if h.waits || h.compared == nil || h.compared.Err != nil {
			return false
		}
	}
	return len(c.handlers) > 0
}

// settle decides about the Clusters that have had no calls for a while: all handlers that are called for them are
// known. It also decides about those whose answers have been equal for a while.
func (s *state) settle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.clusters {
		switch {
		case !c.settled && c.allCompared() && now.Sub(c.called) >= s.engine.settle:
			c.settled = true
		case c.settled && s.engine.waited(c.record, now) && !s.engine.waited(c.record, now.Add(-s.engine.settle)):
		default:
			continue
		}
		s.engine.write(write{rollout: s.name, cluster: name})
	}
}

// waited reports whether the answers for a Cluster have been equal for so long that other processes, which see other
// calls about it, would have stored by now that theirs are not.
func (e *Engine) waited(equal *v1alpha1.ExtensionRolloutRecord, now time.Time) bool {
	return !e.config.Shared || equal != nil && now.Sub(equal.Spec.Since.Time) >= e.settle
}

// count counts a call of the candidate, and aborts the rollout if too many have failed.
func (s *state) count(r *Rollout, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != r {
		return
	}
	s.calls[s.called%len(s.calls)] = failed
	s.called++
	if failed && s.failing() {
		s.engine.write(write{rollout: s.name, aborted: true})
	}
}

// failing reports whether too many of the last calls of the candidate have failed. The mutex is held.
func (s *state) failing() bool {
	if s.current == nil || s.current.spec.Abort == nil || s.called < limits.RolloutLeastCalls {
		return false
	}
	last := s.calls[:min(s.called, len(s.calls))]
	n := 0
	for _, failed := range last {
		if failed {
			n++
		}
	}
	return n*100 > int(*s.current.spec.Abort.ErrorPercent)*len(last)
}
