// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// evidence is what comparisons of answers have shown of one Cluster. It is a state machine of what is asked: not all
// requests say which reconcile they are of, so that a reconcile is known by its end, which is that a request is of
// another one, that something is asked again, or that nothing is for a while.
//
// Only equal successes are evidence, and only if the candidate answers one request alike several times in a row. What
// differs counts until a reconcile that has come to its end has asked the question with other content, or several have
// not asked it.
type evidence struct {
	bytes      *atomic.Int64 // of all Clusters
	asked      map[ask]*finding
	reconciles map[string]*reconcile
	forgotten  map[ask]int // how often what a record says was forgotten

	waiting int       // comparisons
	failed  time.Time // the last call that failed, or is not compared: its reconcile asks more than is known
	changed bool      // since the Cluster was decided about
}

// ask is a question with its content. Of what is stored, the content is not known, and in old records neither is the
// question.
type ask struct{ handler, question, content string }

// finding is what comparing the answers to one question has shown.
type finding struct {
	differences []v1alpha1.RolloutDifference // none for equal answers, and if err is the first that was learned
	omitted     int
	err         error // why the candidate did not answer the last time
	isStored    bool  // differences are those of a record

	last     time.Time
	answers  int  // equal ones, in a row
	changes  int  // from equal answers to others, or back, to the same request
	isKnown  bool // answers have been compared
	hasLast  bool // answers to the question have been, perhaps with other content
	wasEqual bool // the last ones were equal
	absent   int  // reconciles that have ended since, and have not asked it
}

// reconcile is what the reconciles of one kind have asked.
type reconcile struct {
	id          string    // of the one that goes on, if its requests tell
	began, last time.Time // calls of it
	asked       map[ask]struct{}
	isNew       bool // it asks a question that the one before it has not

	ended      time.Time        // the last one that has ended; zero for none
	steady     time.Time        // the end of the first one since which nothing else was asked; zero for none
	before     map[ask]struct{} // without contents
	isComplete bool             // no call of it has failed
}

func newEvidence(bytes *atomic.Int64) *evidence {
	return &evidence{
		bytes: bytes, asked: map[ask]*finding{}, reconciles: map[string]*reconcile{}, forgotten: map[ask]int{},
	}
}

// take takes what came of comparing the answers to a call, and reports whether there is room for it.
func (v *evidence) take(k ask, called time.Time, c *registry.Compared) bool {
	v.changed = true
	name := reconcileOf(k.question)
	r := v.reconciles[name]
	if r == nil {
		r = &reconcile{asked: map[ask]struct{}{}}
		v.reconciles[name] = r
	}
	if r.isAnother(k, c.Reconcile) {
		v.end(name, r, called)
	}
	r.id = cmp.Or(c.Reconcile, r.id)
	if len(r.asked) == 0 || called.Before(r.began) {
		r.began = called
	}
	if called.After(r.last) {
		r.last = called
	}
	a := v.asked[k]
	if a == nil {
		if len(v.asked) >= limits.RolloutQuestions || v.bytes.Load() >= limits.RolloutEvidenceBytes {
			v.fail(called)
			return false
		}
		a = v.newFinding(k)
		v.put(k, a)
	}
	r.asked[k] = struct{}{}
	if _, ok := r.before[k.ofQuestion()]; !ok {
		r.isNew = true
	}
	a.last, a.absent = called, 0
	v.answered(k, c)
	return true
}

// asks reports whether two asks are of the same question.
func (k ask) asks(of ask) bool { return k.ofQuestion() == of.ofQuestion() }

// ofQuestion returns the question alone.
func (k ask) ofQuestion() ask { return ask{handler: k.handler, question: k.question} }

// isAnother reports whether something is asked in another reconcile than the one that goes on.
func (r *reconcile) isAnother(k ask, id string) bool {
	if id != "" && r.id != "" && id != r.id {
		return true
	}
	_, again := r.asked[k]
	return again
}

// newFinding returns what is known of a content that was not asked before: what other contents of its question have
// shown. The variables of a request have the annotations of its Cluster, so that each may have another content.
func (v *evidence) newFinding(k ask) *finding {
	a, last := &finding{}, time.Time{}
	for other, o := range v.asked {
		if !other.asks(k) {
			continue
		}
		if !o.isStored && o.last.After(last) {
			last = o.last
			a.hasLast, a.wasEqual, a.answers = o.hasLast, o.wasEqual, o.answers
		}
		a.changes = max(a.changes, o.changes) // a candidate that answers at random does so to all content
	}
	return a
}

// answered takes an answer of the candidate to what was taken.
func (v *evidence) answered(k ask, c *registry.Compared) {
	a := v.asked[k]
	if a == nil {
		return
	}
	v.changed = true
	if a.err = c.Err; c.Err != nil {
		a.answers = 0
		return // what was known still holds
	}
	v.bytes.Add(-a.bytes())
	a.differences, a.omitted = differencesOf(k, c)
	v.bytes.Add(a.bytes())
	isEqual := len(a.differences) == 0
	if !isEqual {
		a.answers = 0
	}
	if c.Unproven != "" {
		return
	}
	if a.hasLast && a.wasEqual != isEqual {
		a.changes++
		a.answers = 0
	}
	if a.isKnown, a.hasLast, a.wasEqual = true, true, isEqual; isEqual {
		a.answers++
	}
}

// wants reports whether the candidate has to be asked again, because it is not known whether its answers, which are
// equal so far, always are.
func (v *evidence) wants(k ask) bool {
	a := v.asked[k]
	return a != nil && a.err == nil && len(a.differences) == 0 && !a.isProven()
}

// isProven reports whether the answers are known to be equal. After each change, twice as many have to be.
func (a *finding) isProven() bool {
	return a.err == nil && a.answers >= limits.RolloutAnswers<<min(a.changes, maxShift)
}

// maxShift bounds what doubles.
const maxShift = 8

func (a *finding) bytes() int64 {
	n := int64(askBytes)
	for _, d := range a.differences {
		n += int64(len(d.Object) + len(d.Path) + len(d.Stable) + len(d.Candidate) + len(d.Machines))
	}
	return n
}

// askBytes is what an ask takes besides the texts of its differences.
const askBytes = 512

func (v *evidence) put(k ask, a *finding) {
	v.bytes.Add(a.bytes())
	v.asked[k] = a
}

func (v *evidence) drop(k ask) {
	v.bytes.Add(-v.asked[k].bytes())
	delete(v.asked, k)
}

// clear forgets everything. What is compared at the moment is of the evidence that was, and says nothing any more.
func (v *evidence) clear() *evidence {
	for k := range v.asked {
		v.drop(k)
	}
	return newEvidence(v.bytes)
}

// fail notes that a call has failed, or was not compared.
func (v *evidence) fail(called time.Time) {
	v.changed = true
	if called.After(v.failed) {
		v.failed = called
	}
}

// end ends the reconcile that goes on. If it is complete, it replaces what earlier ones have asked with other content.
func (v *evidence) end(name string, r *reconcile, now time.Time) {
	wasComplete := r.isComplete
	r.isComplete, r.ended = v.failed.Before(r.began), now
	if r.isNew || r.steady.IsZero() || r.isComplete && !wasComplete {
		r.steady = now
	}
	for k, a := range v.asked {
		of := reconcileOf(k.question)
		if _, ok := r.asked[k]; ok {
			continue
		}
		if v.isOutdated(k, r) {
			v.drop(k)
			continue
		}
		if !r.isComplete || of != name && of != "" {
			continue
		}
		a.absent++
		switch {
		case v.isReplaced(k, r):
			v.drop(k)
		case a.absent >= limits.RolloutForgotten<<min(v.forgotten[k], maxShift) && now.Sub(a.last) >= limits.RolloutSettle:
			v.drop(k)
			if a.isStored {
				v.forgotten[k]++ // another process may say it again
			}
		}
	}
	r.before = make(map[ask]struct{}, len(r.asked))
	for k := range r.asked {
		r.before[k.ofQuestion()] = struct{}{}
	}
	r.id, r.asked, r.isNew = "", map[ask]struct{}{}, false
}

// isOutdated reports whether a reconcile, be it complete or not, has asked the question of k with other content that
// holds the Cluster as k does. Otherwise the contents of a Cluster whose reconciles all fail would be more and more.
func (v *evidence) isOutdated(k ask, by *reconcile) bool {
	for other := range by.asked {
		if a := v.asked[other]; other.asks(k) && a != nil &&
			(len(v.asked[k].differences) == 0 || len(a.differences) > 0) {
			return true
		}
	}
	return false
}

// isReplaced reports whether a reconcile has asked the question of k with other content, and got answers that could be
// compared.
func (v *evidence) isReplaced(k ask, by *reconcile) bool {
	replaced := false
	for other := range by.asked {
		if other.asks(k) {
			if a := v.asked[other]; a == nil || !a.isKnown || a.err != nil {
				return false
			}
			replaced = true
		}
	}
	return replaced
}

// rest ends the reconciles that have asked nothing for a while.
func (v *evidence) rest(now time.Time) {
	for name, r := range v.reconciles {
		if v.waiting == 0 && len(r.asked) > 0 && now.Sub(r.last) >= limits.RolloutSettle {
			v.end(name, r, r.last)
			v.changed = true
		}
	}
}

// hold takes what a record says that another process has stored, or this one before a restart. It counts until the
// question is asked again here.
func (v *evidence) hold(differences []v1alpha1.RolloutDifference, now time.Time) {
	for k, a := range v.asked {
		if a.isStored {
			v.drop(k)
		}
	}
	for _, d := range differences {
		k := ask{handler: d.Handler, question: d.Question}
		a := v.asked[k]
		if a == nil {
			a = &finding{last: now, isStored: true}
		} else {
			v.drop(k)
		}
		a.differences = append(a.differences, d)
		v.put(k, a)
	}
	v.changed = true
}

// verdict is what follows from evidence.
type verdict struct {
	// isSeen means that a reconcile has ended, and nothing that is under way could show more. isComplete means that no
	// call of it has failed.
	isSeen, isComplete bool
	// isAnswered means that the candidate has answered everything, isEqual that all answers are equal, and isProven that
	// they are known to be so each time.
	isAnswered, isEqual, isProven bool
	// differs are the asks whose answers differ, or prove nothing, and fails those that the candidate did not answer the
	// last time, both in order.
	differs, fails []ask
}

// verdict returns what is known at a time.
func (v *evidence) verdict(now time.Time) verdict {
	d := verdict{
		isSeen: v.waiting == 0 && len(v.reconciles) > 0, isComplete: true,
		isAnswered: len(v.asked) > 0, isEqual: len(v.asked) > 0, isProven: len(v.asked) > 0,
	}
	for k, a := range v.asked {
		if len(a.differences) > 0 {
			d.differs = append(d.differs, k)
		}
		if a.err != nil {
			d.isAnswered = false
			d.fails = append(d.fails, k)
		}
		d.isProven = d.isProven && a.isProven()
		d.isEqual = d.isEqual && a.err == nil && a.answers > 0 && (a.changes == 0 || a.isProven())
	}
	for _, r := range v.reconciles {
		d.isSeen = d.isSeen && !r.isNew && !r.steady.IsZero() && now.Sub(r.steady) >= limits.RolloutPause
		d.isComplete = d.isComplete && r.isComplete && !v.failed.After(r.ended)
	}
	slices.SortFunc(d.differs, compareAsks)
	slices.SortFunc(d.fails, compareAsks)
	return d
}

func compareAsks(a, b ask) int {
	return cmp.Or(cmp.Compare(a.handler, b.handler), cmp.Compare(a.question, b.question),
		cmp.Compare(a.content, b.content))
}
