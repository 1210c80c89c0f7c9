// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// watched is the evidence of a Cluster whose calls are written as texts: a reconcile has one word for each call, which
// is a question, perhaps a content behind a colon and the reconcile that it is of behind another one, and what comes of comparing: = for equal answers, ! for different
// ones, F for two Failures, after which Cluster API asks no more, X for a candidate that does not answer, and ~ for a
// call that fails, which is not compared. A dash is no call.
type watched struct {
	*evidence
	now time.Time
}

func watch() *watched {
	return &watched{newEvidence(&atomic.Int64{}), time.Unix(1_000_000, 0)}
}

// reconcile makes the calls of a reconcile, and reports whether the Cluster may move at any moment of it.
func (w *watched) reconcile(calls string) (moves bool) {
	for word := range strings.FieldsSeq(calls) {
		w.now = w.now.Add(time.Second)
		outcome := word[len(word)-1]
		question, content, _ := strings.Cut(word[:len(word)-1], ":")
		content, id, _ := strings.Cut(content, ":")
		k := ask{"patch", "GeneratePatches/" + question, content}
		switch outcome {
		case '-':
			continue
		case '~':
			w.fail(w.now)
			return moves
		}
		compared := resultOf(outcome)
		compared.Reconcile = id
		w.take(k, w.now, &compared)
		for n := 1; n < limits.RolloutAnswers && w.wants(k); n++ {
			w.answered(k, &compared)
		}
		if outcome == 'F' {
			w.fail(w.now)
			return moves || w.moves()
		}
		moves = moves || w.moves()
	}
	return moves
}

func resultOf(outcome byte) (c registry.Compared) {
	switch outcome {
	case '!':
		c.Differences = []registry.Difference{{Path: "/x", Stable: "1", Candidate: "2"}}
	case 'F':
		c.Unproven = "Failure: no"
	case 'X':
		c.Err = errors.New("refused")
	}
	return c
}

// moves reports whether the Cluster moves without approval.
func (w *watched) moves() bool {
	d := w.verdict(w.now)
	return d.isSeen && d.isComplete && d.isProven && d.isEqual && d.isAnswered && len(d.differs) == 0
}

// pass lets a time pass without calls.
func (w *watched) pass(d time.Duration) bool {
	w.now = w.now.Add(d)
	w.rest(w.now)
	return w.moves()
}

// Whatever the answers to two patches of three reconciles are, no Cluster moves whose differences, or Failures, have not
// been compared anew; and one moves whose questions have all become equal.
func TestEvidenceOfAllSequences(t *testing.T) {
	var all []string
	for _, first := range []string{"a=", "a!", "aF", "aX"} {
		for _, second := range []string{"b=", "b!", "bF", "bX", "b~", "b-"} {
			all = append(all, first+" "+second)
		}
	}
	n := 0
	for _, one := range all {
		for _, two := range all {
			for _, three := range all {
				w := watch()
				bad := map[string]bool{} // questions whose last comparison is no evidence
				asked := map[string]bool{}
				check := func(moves bool) {
					n++
					if moves && (len(bad) > 0 || !asked["a"]) {
						t.Fatalf("%s, %s, %s: moves, and %v", one, two, three, bad)
					}
				}
				failed := false
				for _, calls := range []string{one, two, three} {
					failed = false
					for word := range strings.FieldsSeq(calls) {
						question, outcome := word[:1], word[1]
						if failed || outcome == '-' {
							continue
						}
						failed = outcome == 'F' || outcome == '~'
						if asked[question] = true; outcome != '=' && outcome != '~' {
							bad[question] = true
						} else if outcome == '=' {
							delete(bad, question)
						}
						check(w.reconcile(word))
					}
					check(w.pass(limits.RolloutPause + time.Second))
				}
				check(w.pass(limits.RolloutSettle))
				// All answers have become equal.
				for range 10 {
					w.reconcile("a= b=")
					w.pass(limits.RolloutPause)
				}
				if !w.pass(limits.RolloutSettle) {
					t.Fatalf("%s, %s, %s: does not move although all answers are equal", one, two, three)
				}
			}
		}
	}
	t.Logf("%d moments", n)
}

func TestEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		reconciles []string
		want       bool
	}{
		"equal":                  {"all are", []string{"a= b=", "a= b="}, true},
		"settings":               {"the handler answers one of two patches differently", []string{"a! b=", "a! b=", "a! b="}, false},
		"content":                {"one question with two contents in a reconcile", []string{"a:1! a:2=", "a:1! a:2=", "a:1! a:2="}, false},
		"content the other way":  {"the last one differs", []string{"a:1= a:2!", "a:1= a:2!", "a:1= a:2!"}, false},
		"same content twice":     {"the next question differs", []string{"a= a= b!", "a= a= b!"}, false},
		"variables change":       {"a newer comparison replaces an older one", []string{"a:1! b=", "a:2= b=", "a:2= b="}, true},
		"variables change badly": {"a newer comparison replaces an older one", []string{"a:1= b=", "a:2! b=", "a:2! b="}, false},
		"every content is new":   {"each replaces the one before", []string{"a:1! b:1=", "a:2= b:2=", "a:3= b:3=", "a:4= b:4=", "a:4= b:4="}, true},
		"becomes equal":          {"the candidate was mended", []string{"a! b=", "a! b=", "a= b=", "a= b="}, true},
		"no longer asked":        {"the patch was removed", []string{"a! b=", "b=", "b=", "b=", "b=", "b="}, true},
		"not asked once":         {"one reconcile says nothing", []string{"a! b=", "b=", "b="}, false},
		"asked now and then":     {"it still is", []string{"a! b=", "b=", "b=", "a! b=", "b=", "b="}, false},
		"Failures":               {"they prove nothing", []string{"aF", "aF", "aF"}, false},
		"Failure in the middle":  {"what comes after it is not asked", []string{"a= bF", "a= bF", "a= bF", "a= bF", "a= bF"}, false},
		"foreign failure":        {"the patch of another extension fails, before one that differs", []string{"a= c!", "a= b~", "a= b~", "a= b~", "a= b~", "a= b~"}, false},
		"after foreign failure":  {"all of it is asked again", []string{"a= b~", "a= b~", "a= c=", "a= c="}, true},
		"cause disappears":       {"the candidate differs", []string{"aF", "aF", "a!", "a!"}, false},
		"cause is gone":          {"the answers are equal", []string{"aF", "aF", "a= b=", "a= b="}, true},
		"candidate is down":      {"at the last comparison", []string{"a= b=", "aX b="}, false},
		"alternates":             {"the candidate answers at random", strings.Split(strings.Repeat("a! b=,a= b=,", 20), ","), false},
		"nothing":                {"nothing was asked", nil, false},
	} {
		w := watch()
		moved := false
		for _, calls := range tc.reconciles {
			moved = w.reconcile(calls) || moved
			moved = w.pass(limits.RolloutPause) || moved
		}
		if moved = w.pass(limits.RolloutSettle) || moved; moved != tc.want {
			t.Errorf("%s: %s: moves: %t, want %t", name, tc.reason, moved, tc.want)
		}
	}
}

// A Cluster that is reconciled without pause moves, and only by what all its reconciles have shown.
func TestEvidenceWithoutPause(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		stored string // the question of a difference in its record
		calls  []string
		want   bool
	}{
		"equal":           {"all answers are", "", []string{"a= b="}, true},
		"different":       {"one is", "", []string{"a= b!"}, false},
		"restart":         {"what the record says has become equal", "GeneratePatches/b", []string{"a= b="}, true},
		"still different": {"what the record says was not asked", "CanUpdateMachine/b", []string{"a= b="}, false},
		"never asked":     {"a call before it always fails", "GeneratePatches/b", []string{"a= c~"}, false},
		"new content":     {"each replaces the one before", "", []string{"a:1= b=", "a:2= b=", "a:3= b=", "a:4= b="}, true},
		"annotations": {
			"each reconcile has other content, as it has annotations of the Cluster", "GeneratePatches/b",
			[]string{"a:1:1= b:1:1=", "a:2:2= b:2:2=", "a:3:3= b:3:3="}, true,
		},
		"annotations, different": {"one question always is", "", []string{"a:1:1= b:1:1!", "a:2:2= b:2:2!", "a:3:3= b:3:3!"}, false},
		"two contents":           {"of one question in each reconcile", "", []string{"a:1:1= a:2:1!", "a:3:2= a:4:2!"}, false},
		"fails at times":         {"what comes after it may never have been asked", "", []string{"a= b~", "a="}, false},
	} {
		w := watch()
		if tc.stored != "" {
			w.hold([]v1alpha1.RolloutDifference{{Handler: "patch", Question: tc.stored, Path: "/x"}}, w.now)
		}
		moved := false
		for n := range 40 {
			moved = w.reconcile(tc.calls[n%len(tc.calls)]) || moved
		}
		if moved != tc.want {
			t.Errorf("%s: %s: moves: %t, want %t", name, tc.reason, moved, tc.want)
		}
	}
}

// A candidate that answers at random is asked so often that it is found out, the more often the more it has changed.
func TestRandomCandidate(t *testing.T) {
	for _, format := range []string{"", "%d"} { // the same content each time, and always another one
		testRandomCandidate(t, format)
	}
}

func testRandomCandidate(t *testing.T, content string) {
	t.Helper()
	moved := 0
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := watch()
		w.reconcile("a! b=")
		for n := range 50 {
			w.now = w.now.Add(time.Minute)
			k := ask{"patch", "GeneratePatches/a", ""}
			if content != "" {
				k.content = fmt.Sprintf(content, n)
			}
			compared := resultOf("=!"[random.IntN(2)])
			w.take(k, w.now, &compared)
			for n := 1; n < limits.RolloutAnswers && w.wants(k); n++ {
				compared = resultOf("=!"[random.IntN(2)])
				w.answered(k, &compared)
			}
			w.reconcile("b=")
			if w.pass(limits.RolloutPause) {
				moved++
				break
			}
		}
	}
	if moved > 10 {
		t.Errorf("%q: %d of 1000 Clusters that were known to be different have moved", content, moved)
	}
	t.Logf("%q: %d of 1000 have moved", content, moved)
}

// What a record says counts until what it is about has been compared, or is not asked any more; that of an earlier
// release, which does not say what it is about, for as long.
func TestEvidenceOfRecords(t *testing.T) {
	difference := func(question string) []v1alpha1.RolloutDifference {
		return []v1alpha1.RolloutDifference{{Handler: "patch", Question: question, Path: "/x"}}
	}
	for name, tc := range map[string]struct {
		reason     string
		stored     []v1alpha1.RolloutDifference
		reconciles []string
		want       bool
	}{
		"restart":          {"the other patch is equal", difference("GeneratePatches/b"), []string{"a=", "a="}, false},
		"compared":         {"and equal", difference("GeneratePatches/b"), []string{"a= b=", "a= b="}, true},
		"still different":  {"compared anew", difference("GeneratePatches/b"), []string{"a= b!", "a= b!"}, false},
		"not asked":        {"by many reconciles", difference("GeneratePatches/b"), []string{"a=", "a=", "a=", "a=", "a=", "a="}, true},
		"fails":            {"the candidate has not answered it", difference("GeneratePatches/b"), []string{"a= bX", "a= bX", "a= bX"}, false},
		"old record":       {"it is about one of them", difference(""), []string{"a= b=", "a= b="}, false},
		"old record later": {"none of them differs", difference(""), []string{"a= b=", "a= b=", "a= b=", "a= b=", "a= b=", "a= b="}, true},
		"another hook": {
			"the reconciles of a topology do not ask it", difference("CanUpdateMachine/1"),
			[]string{"a=", "a=", "a=", "a=", "a=", "a="}, false,
		},
	} {
		w := watch()
		w.hold(tc.stored, w.now)
		moved := false
		for _, calls := range tc.reconciles {
			moved = w.reconcile(calls) || moved
			moved = w.pass(limits.RolloutPause) || moved
		}
		if moved = w.pass(limits.RolloutSettle) || moved; moved != tc.want {
			t.Errorf("%s: %s: moves: %t, want %t", name, tc.reason, moved, tc.want)
		}
	}
}

// However long reconciles fail that each have other content, what is known stays small, and the Cluster moves when they
// no longer do.
func TestEvidenceOfFailingReconciles(t *testing.T) {
	for _, outcome := range []string{"=", "!", "F", "X"} {
		w := watch()
		n := 0
		reconcile := func(calls string) bool {
			n++
			return w.reconcile(strings.ReplaceAll(calls, "#", fmt.Sprintf(":%d:%d", n, n)))
		}
		for range 2 * limits.RolloutQuestions {
			if reconcile("a#" + outcome + " b~") {
				t.Fatalf("a is %s: moves, but b was never asked", outcome)
			}
		}
		if len(w.asked) > 2 {
			t.Errorf("a is %s: %d contents of one question are known", outcome, len(w.asked))
		}
		moved := false
		for range 2 * int(limits.RolloutPause/time.Second) {
			moved = reconcile("a#= b#=") || moved
		}
		if !moved {
			t.Errorf("a was %s: does not move although all answers are equal", outcome)
		}
	}
}

// What is known is bounded, and a Cluster of which more is asked stays.
func TestEvidenceIsBounded(t *testing.T) {
	w := watch()
	for i := range limits.RolloutQuestions + 1 {
		w.reconcile(fmt.Sprintf("a:%d=", i))
	}
	if w.pass(2*limits.RolloutSettle) || len(w.asked) != limits.RolloutQuestions {
		t.Errorf("%d are known", len(w.asked))
	}
	bytes := w.bytes.Load()
	if next := w.clear(); bytes < limits.RolloutQuestions*askBytes || next.bytes.Load() != 0 {
		t.Errorf("%d bytes, and %d without any", bytes, next.bytes.Load())
	}
	w = watch()
	w.bytes.Add(limits.RolloutEvidenceBytes)
	if w.reconcile("a="); w.pass(2*limits.RolloutSettle) || len(w.asked) > 0 {
		t.Error("other Clusters have taken all there is")
	}
}
