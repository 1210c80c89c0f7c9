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
	"github.com/hookgate/hookgate/internal/base/limits"
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

	evidence *evidence  // of comparisons with the current candidate
	labels   labels.Set // as the last call had them
}

// of returns what is known of a Cluster; if it is not known and there is room, it is added. The mutex is held.
func (s *state) of(name types.NamespacedName) *cluster {
	c := s.clusters[name]
	if c == nil && len(s.clusters) < limits.RolloutClusters {
		c = s.newCluster(name)
	}
	return c
}

func (s *state) newCluster(name types.NamespacedName) *cluster {
	c := &cluster{evidence: newEvidence(&s.engine.evidence)}
	s.clusters[name] = c
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
	if before == nil || r == nil || before.candidate != r.candidate || before.stable != r.stable ||
		!slices.Equal(before.spec.NotCompared, r.spec.NotCompared) {
		s.called = 0
		for _, c := range s.clusters {
			c.evidence = c.evidence.clear()
			s.hold(c)
		}
	}
	all := slices.Collect(maps.Keys(s.clusters))
	for _, c := range s.clusters {
		c.evidence.changed = true
	}
	s.mu.Unlock()
	for _, of := range all {
		s.engine.write(write{rollout: s.name, cluster: of})
	}
}

// hold makes the record of a Cluster a part of what is known of it. The mutex is held.
func (s *state) hold(c *cluster) {
	if s.current == nil {
		return
	}
	var differences []v1alpha1.RolloutDifference
	if c.record != nil && c.record.Spec.Candidate == s.current.candidate && !c.hasMoved() {
		differences = c.record.Spec.Differences
	}
	c.evidence.hold(differences, time.Now())
}

// set takes a record as it is stored, and whether this process has just stored it.
func (s *state) set(record *v1alpha1.ExtensionRolloutRecord, isOwn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if record.Spec.State == v1alpha1.RolloutStateAborted {
		if !isOlder(record, s.aborted) {
			s.aborted = record
		}
		return
	}
	name := clusterOf(record)
	c := s.of(name)
	if c == nil { // never leave out what says that a Cluster has moved
		c = s.newCluster(name)
	}
	if isOlder(record, c.record) {
		return
	}
	isKnown := isOwn || c.record != nil && c.record.UID == record.UID && record.ResourceVersion != "" &&
		c.record.ResourceVersion == record.ResourceVersion
	c.isGone = c.isGone && c.record != nil && c.record.UID == record.UID
	if c.record = record; !isKnown {
		s.hold(c)
		s.engine.write(write{rollout: s.name, cluster: name}) // what another process has stored may not be all
	}
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
			c.evidence = c.evidence.clear()
		}
		c.record, c.isOld = nil, true
		if s.hold(c); c.isGone {
			c.evidence.clear()
			delete(s.clusters, clusterOf(record))
		}
	}
}

// begin notes a call about a Cluster whose answer is to be compared. It returns what the comparison will be evidence
// of, or nil if there is none, and reports whether there is room for one more.
func (s *state) begin(r *Rollout, of types.NamespacedName, labels labels.Set) (v *evidence, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(of)
	if c == nil || s.current != r {
		return nil, false
	}
	c.labels, v = labels, c.evidence
	if v.waiting >= limits.RolloutWaiting {
		v.fail(time.Now())
		return v, false
	}
	v.waiting++
	return v, true
}

// dropped notes that a call is not compared, although it was begun.
func (s *state) dropped(of *comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.evidence.waiting--
	of.evidence.fail(of.called)
}

// failed notes that a call about a Cluster has failed: Cluster API asks no more in this reconcile.
func (s *state) failed(of types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[of]; c != nil {
		c.evidence.fail(time.Now())
	}
}

// take takes what came of asking the candidate so often, and reports whether it has to be asked again. The comparison
// has ended if not.
func (s *state) take(of *comparison, compared *registry.Compared, asks int) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, k := of.evidence, ask{of.handler, compared.Question, compared.Content}
	switch {
	case compared.Dropped, k.question == "" && compared.Err != nil:
		v.fail(of.called)
	case k.question == "": // it asks nothing
	case asks == 1:
		again = v.take(k, of.called, compared) && of.mayMove
	default:
		v.answered(k, compared)
		again = true
	}
	if again && asks < limits.RolloutAnswers && v.wants(k) {
		return true
	}
	v.waiting--
	if c := s.clusters[of.cluster]; c == nil || c.evidence != v {
		v.clear() // of another candidate
		return false
	}
	s.engine.write(write{rollout: s.name, cluster: of.cluster})
	return false
}

// settle decides about the Clusters of which more is known than when they were decided about, and about those whose
// answers have been equal for a while.
func (s *state) settle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.clusters {
		c.evidence.rest(now)
		switch {
		case c.evidence.changed && c.evidence.verdict(now).isSeen:
			c.evidence.changed = false
		case s.engine.config.Shared && s.engine.waited(c.record, now) &&
			!s.engine.waited(c.record, now.Add(-s.engine.settle)):
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
