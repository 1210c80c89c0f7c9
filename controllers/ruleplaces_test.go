// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// unconnected returns places without an API server, as they were seen.
func unconnected(taken map[string]int) *rulePlaces {
	p := newRulePlaces(&ruleParams{watches: map[hookrule.Reference]*paramWatch{}}, false, slog.New(slog.DiscardHandler))
	p.cached = func(_ context.Context, rule string) (all []v1alpha1.ClusterRecord, known bool) {
		for name, n := range taken {
			for i := range n {
				if rule == "" || rule == name {
					record := v1alpha1.ClusterRecord{Spec: v1alpha1.ClusterRecordSpec{
						ClusterName: fmt.Sprint("c", i), Place: &v1alpha1.ClusterPlace{Rule: name, Since: metav1.Now()},
					}}
					record.Namespace = "n"
					all = append(all, record)
				}
			}
		}
		return all, true
	}
	return p
}

// A Cluster that waits costs the API server nothing, and none gets a place while the Clusters are not known.
func TestPlacesOfUnknownClusters(t *testing.T) {
	p := unconnected(map[string]int{"r": 2})
	want := hookrule.Place{Namespace: "n", Name: "other"}
	if is, err := p.Take(t.Context(), "r", want, 2, false); err != nil || is.OK {
		t.Errorf("all places are taken: got %+v, %v", is, err)
	}
	for what, take := range map[string]func() (hookrule.Allocation, error){
		"a place is free":       func() (hookrule.Allocation, error) { return p.Take(t.Context(), "r", want, 3, false) },
		"an operator lifts it":  func() (hookrule.Allocation, error) { return p.Take(t.Context(), "r", want, 2, true) },
		"the rule was not seen": func() (hookrule.Allocation, error) { return p.Take(t.Context(), "new", want, 2, false) },
		"the Cluster has one": func() (hookrule.Allocation, error) {
			return p.Take(t.Context(), "r", hookrule.Place{Namespace: "n", Name: "c0"}, 2, false)
		},
	} {
		if is, err := take(); hook.KindOf(err) != hook.NotReady || is.OK {
			t.Errorf("%s: got %+v, %v", what, is, err)
		}
	}
}

// Of Clusters that are about to be admitted, the first one counts for the others. None counts for one that was admitted,
// which would otherwise wait again.
func TestAdmissionsThatCount(t *testing.T) {
	admission := func(version string, since metav1.Time) *v1alpha1.ClusterRecord {
		r := &v1alpha1.ClusterRecord{Spec: v1alpha1.ClusterRecordSpec{Admission: &v1alpha1.ClusterAdmission{Rule: "r", Since: since}}}
		r.ResourceVersion = version
		return r
	}
	first, second := admission("9", metav1.Time{}), admission("10", metav1.Time{})
	before, after := admission("8", metav1.Now()), admission("11", metav1.Now())
	for name, tc := range map[string]struct {
		r, own *v1alpha1.ClusterRecord
		want   bool
	}{
		"First":         {first, second, true},
		"Second":        {second, first, false},
		"Admitted":      {after, first, true},
		"AdmittedToo":   {before, after, true},
		"ForAdmitted":   {first, after, false},
		"ForUnrecorded": {first, nil, false},
		"Recorded":      {before, nil, true},
	} {
		if got := counts(tc.r, tc.own); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// The status has room for so many places.
func TestPlacesShown(t *testing.T) {
	const each = limits.HeldClusters/2 + 3
	p := unconnected(map[string]int{"a": each, "b": each})
	shown := p.shownIn([]status.InProcess{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	for i, want := range [][2]int{{each, 0}, {each - 6, 6}, {0, 0}} {
		if got := [2]int{len(shown[i].Places), shown[i].MissedPlaces}; got != want {
			t.Errorf("%s: got %v places and missed, want %v", shown[i].Name, got, want)
		}
	}
}

// Holds that were lifted wait for their events, each once, and no more than there is room for.
func TestLiftedHoldsAreBounded(t *testing.T) {
	p := unconnected(nil)
	for range 2 {
		for i := range limits.LiftedHolds + 1 {
			p.Lifted("r", types.NamespacedName{Namespace: "n", Name: fmt.Sprint("c", i)}, "waits")
		}
	}
	n := 0
	for _, _, ok := p.lifts.take(); ok; _, _, ok = p.lifts.take() {
		n++
	}
	if n != limits.LiftedHolds {
		t.Errorf("%d holds wait, want %d", n, limits.LiftedHolds)
	}
}

// The event of a hold that was lifted names what lifts it: the rule, whose annotation it is, or the policy.
func TestEventsOfLiftedHolds(t *testing.T) {
	for note, of := range map[string]struct {
		lift  lift
		about string
	}{
		`HookRule "r" holds the Cluster, but the Cluster goes on because of the annotation hookgate.dev/skip-hold, which "ada" has set; the rule says: waits`: {
			lift{rule: "r"}, "HookRule r",
		},
		`Handler "gate.acme" holds the Cluster, but the Cluster goes on because of spec.liftedHolds of ExtensionPolicy "p"; the handler says: waits`: {
			lift{policy: "p", handler: "gate.acme"}, "ExtensionPolicy p",
		},
	} {
		by, said := of.lift.said(`, which "ada" has set`, "waits")
		if got := by.Kind + " " + by.Name; got != of.about || said != note {
			t.Errorf("got %s, about %s; want %s, about %s", said, got, note, of.about)
		}
	}
}
