// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/limits"
)

// wanted returns the record that is to be stored, or nil if the one that is stored says the same.
func (s *state) wanted(w write) *v1alpha1.ExtensionRolloutRecord {
	s.mu.Lock()
	r, c := s.current, s.clusters[w.cluster]
	if w.aborted {
		failing := s.failing() && s.abortedFor(r.candidate) == nil
		s.mu.Unlock()
		if !failing {
			return nil
		}
		return r.abortedRecord()
	}
	if r == nil || r.candidate == "" || c == nil || c.isGone || c.hasMoved() && c.record.Spec.Candidate != r.stable {
		s.mu.Unlock()
		return nil
	}
	stored, found, before := c.record, c.judge(r.candidate), metav1.ObjectMeta{}
	s.mu.Unlock()
	if stored != nil { // with its version, so that another replica's record is not replaced unseen
		before = *stored.ObjectMeta.DeepCopy()
	}
	if stored != nil && stored.Spec.Candidate != r.candidate {
		stored = nil // of an earlier rollout
	}
	if found == nil {
		return nil
	}
	next := r.record(w.cluster, found.state, found.message, found.differences, found.omitted)
	if before.Name != "" {
		next.ObjectMeta = before
	}
	if stored == nil || !same(stored, next) {
		return next // first the comparison, so that a record shows what was known when the Cluster moved
	}
	if w.cluster.Name == "" || !found.settled || !r.mayMoveAny() {
		return nil
	}
	isEqual := found.state == v1alpha1.RolloutStateEqual
	if isEqual && !s.engine.waited(stored, time.Now()) {
		return nil // settle asks again
	}
	may, approved := r.mayMove(w.cluster, found.labels)
	if !may || !isEqual && !approved && r.spec.OnDifference != v1alpha1.OnDifferenceMove {
		return nil
	}
	why := "the answers are equal"
	switch {
	case !isEqual && approved:
		why = "the differences are approved"
	case !isEqual:
		why = "onDifference is Move"
	}
	next.Spec.State, next.Spec.Message = v1alpha1.RolloutStateMoved, why
	return next
}

// same reports whether two records say the same of a Cluster.
func same(a, b *v1alpha1.ExtensionRolloutRecord) bool {
	was, is := a.Spec, b.Spec
	was.Since = is.Since
	return equality.Semantic.DeepEqual(was, is)
}

// found is what comparisons have shown of a Cluster.
type found struct {
	state       v1alpha1.RolloutState
	message     string
	differences []v1alpha1.RolloutDifference
	omitted     int
	settled     bool
	labels      labels.Set
}

// judge returns what comparisons have shown of a Cluster, or nil if that is not certain: a candidate that did not
// answer shows nothing.
func (c *cluster) judge(candidate string) *found {
	f := &found{state: v1alpha1.RolloutStateEqual, settled: c.settled, labels: c.labels}
	size := 0
	add := func(d v1alpha1.RolloutDifference) {
		size += len(d.Object) + len(d.Path) + len(d.Stable) + len(d.Candidate) + len(d.Machines)
		if len(f.differences) == limits.RolloutDifferences || size > limits.RolloutDifferencesBytes {
			f.omitted++
			return
		}
		f.differences = append(f.differences, d)
	}
	for _, name := range slices.Sorted(maps.Keys(c.handlers)) {
		h := c.handlers[name]
		if h.compared == nil || h.compared.Err != nil {
			if h.compared != nil {
				return nil
			}
			continue
		}
		f.omitted += h.compared.Omitted
		for _, d := range h.compared.Differences {
			add(differenceOf(name, d))
		}
	}
	// What another replica, or this one before a restart, has seen of other handlers still holds.
	if c.record != nil && c.record.Spec.Candidate == candidate {
		for _, d := range c.record.Spec.Differences {
			if h := c.handlers[d.Handler]; h == nil || h.compared == nil {
				add(d)
			}
		}
	}
	switch {
	case len(f.differences) > 0:
		f.state, f.message = v1alpha1.RolloutStateDifferent, "the answers differ"
	case !c.settled:
		return nil
	default:
		f.message = "the answers are equal"
	}
	return f
}
