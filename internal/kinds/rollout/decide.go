// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// recordToStore returns the record that is to be stored, or nil if the one that is stored says the same.
func (s *state) recordToStore(w write) *v1alpha1.ExtensionRolloutRecord {
	s.mu.Lock()
	r, c := s.current, s.clusters[w.cluster]
	if w.aborted {
		failing, stored := s.failing() && s.abortedFor(r.candidate) == nil, s.aborted
		s.mu.Unlock()
		if !failing {
			return nil
		}
		next := r.abortedRecord()
		if stored != nil { // of an earlier candidate
			next.ObjectMeta = *stored.ObjectMeta.DeepCopy()
		}
		return next
	}
	if r == nil || r.candidate == "" || c == nil || c.isGone || c.hasMoved() && c.record.Spec.Candidate != r.stable {
		s.mu.Unlock()
		return nil
	}
	stored, before := c.record, metav1.ObjectMeta{}
	if stored != nil { // with its version, so that another replica's record is not replaced unseen
		before = *stored.ObjectMeta.DeepCopy()
	}
	if stored != nil && stored.Spec.Candidate != r.candidate {
		stored = nil // of an earlier rollout
	}
	found := c.judge(stored != nil && stored.Spec.State == v1alpha1.RolloutStateEqual && s.engine.config.Shared)
	s.mu.Unlock()
	may, approved := r.mayMove(w.cluster, found.labels)
	canMove := w.cluster.Name != "" && r.mayMoveAny() && found.isSeen && found.isAnswered
	if found.state == "" {
		if !canMove || !approved {
			return nil
		}
		found.state, found.message = v1alpha1.RolloutStateDifferent, provesNothing
	}
	next := r.record(w.cluster, found.state, found.message, found.differences, found.omitted)
	if before.Name != "" {
		next.ObjectMeta = before
	}
	if stored == nil || !same(stored, next) {
		return next // first the comparison, so that a record shows what was known when the Cluster moved
	}
	isEqual := found.state == v1alpha1.RolloutStateEqual
	if !canMove || isEqual && (!found.isProven && !approved || !s.engine.waited(stored, time.Now())) {
		return nil // settle asks again
	}
	anyway := r.spec.OnDifference == v1alpha1.OnDifferenceMove && found.isComplete && !found.provesNothing
	if !may || !isEqual && !approved && !anyway {
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

// same reports whether two records say the same of a Cluster. A stored one that does not say which questions were asked
// is of an earlier release, or the API server knows no such member.
func same(stored, next *v1alpha1.ExtensionRolloutRecord) bool {
	was, is := stored.Spec.DeepCopy(), next.Spec.DeepCopy()
	was.Since = is.Since
	hasQuestion := func(d v1alpha1.RolloutDifference) bool { return d.Question != "" }
	if !slices.ContainsFunc(was.Differences, hasQuestion) {
		for i := range is.Differences {
			is.Differences[i].Question = ""
		}
	}
	return equality.Semantic.DeepEqual(was, is)
}

// found is what comparisons have shown of a Cluster. Its state is empty if that is nothing yet.
type found struct {
	verdict

	state         v1alpha1.RolloutState
	message       string
	differences   []v1alpha1.RolloutDifference
	omitted       int
	provesNothing bool // some answers are no evidence
	labels        labels.Set
}

// The messages of records.
const (
	differ        = "the answers differ"
	provesNothing = "the answers prove nothing"
)

// judge returns what comparisons have shown of a Cluster. A candidate that did not answer shows nothing, unless the
// Cluster is about to move by what another process has stored, which has to be contradicted.
func (c *cluster) judge(contradict bool) *found {
	f := &found{verdict: c.evidence.verdict(time.Now()), labels: c.labels, message: provesNothing}
	f.list(c.evidence)
	if contradict && len(f.differs) == 0 {
		for _, k := range f.fails {
			f.differences = append(f.differences, unproven(k, c.evidence.asked[k].err.Error()))
		}
		f.differences = f.differences[:min(len(f.differences), limits.RolloutDifferences)]
	}
	for _, d := range f.differences {
		if isUnproven(d) {
			f.provesNothing = true
		} else {
			f.message = differ
		}
	}
	switch {
	case len(f.differences) > 0:
		f.state = v1alpha1.RolloutStateDifferent
	case f.isEqual && f.isSeen && f.isComplete:
		f.state, f.message = v1alpha1.RolloutStateEqual, "the answers are equal"
	}
	return f
}

// list lists differences, with room for some of each question.
func (f *found) list(v *evidence) {
	most, size := max(1, limits.RolloutDifferences/max(len(f.differs), 1)), 0
	listed := map[v1alpha1.RolloutDifference]bool{}
	for _, k := range f.differs {
		a := v.asked[k]
		f.omitted += a.omitted
		for i, d := range a.differences {
			if listed[d] {
				continue // of the same question with other content
			}
			size += len(d.Object) + len(d.Path) + len(d.Stable) + len(d.Candidate) + len(d.Machines)
			if i >= most || len(f.differences) == limits.RolloutDifferences || size > limits.RolloutDifferencesBytes {
				f.omitted++
				continue
			}
			listed[d] = true
			f.differences = append(f.differences, d)
		}
	}
}
