// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

func place(name, per string) hookrule.Place {
	return hookrule.Place{Namespace: "n", Name: name, UID: "1", Per: per, TopologyVersion: "v1"}
}

func TestAllocate(t *testing.T) {
	two := []hookrule.Place{place("a", "x"), place("b", "x")}
	again := place("a", "x")
	again.TopologyVersion = "v2"
	anew := place("a", "x")
	anew.UID = "2"
	for name, tc := range map[string]struct {
		reason string
		want   hookrule.Place
		limit  int
		beyond bool
		is     hookrule.Allocation
		places int
	}{
		"Free":   {"there is a place", place("c", "x"), 3, false, hookrule.Allocation{OK: true}, 3},
		"Taken":  {"there is none", place("c", "x"), 2, false, hookrule.Allocation{}, 2},
		"Per":    {"others do not count", place("c", "y"), 2, false, hookrule.Allocation{OK: true}, 3},
		"Has":    {"a Cluster has one place", place("a", "x"), 2, false, hookrule.Allocation{OK: true}, 2},
		"Moved":  {"whatever its value is by now", place("a", "y"), 1, false, hookrule.Allocation{OK: true}, 2},
		"Again":  {"it may go on with another version", again, 2, false, hookrule.Allocation{OK: true}, 2},
		"Anew":   {"the place of a Cluster that is gone goes to the one with its name", anew, 2, false, hookrule.Allocation{OK: true}, 2},
		"AnewIn": {"as any place, below the limit", anew, 1, false, hookrule.Allocation{}, 2},
		"Lower":  {"a limit that was lowered takes no place away", place("a", "x"), 1, false, hookrule.Allocation{OK: true}, 2},
		"Beyond": {"an operator lets one pass", place("c", "x"), 2, true, hookrule.Allocation{OK: true, Beyond: true}, 3},
		"Within": {"which may be within the limit", place("c", "x"), 3, true, hookrule.Allocation{OK: true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(two)
			got, is := hookrule.Allocate(two, tc.want, tc.limit, tc.beyond)
			if is != tc.is || len(got) != tc.places || !slices.Equal(two, before) {
				t.Errorf("%s: got %+v and %d places, want %+v and %d", tc.reason, is, len(got), tc.is, tc.places)
			}
			if name == "Again" && got[0].TopologyVersion != "v2" {
				t.Errorf("the place is for %s", got[0].TopologyVersion)
			}
		})
	}
	t.Run("Full", func(t *testing.T) {
		all := make([]hookrule.Place, limits.RulePlaces)
		for i := range all {
			all[i] = place(strconv.Itoa(i), strconv.Itoa(i))
		}
		if got, is := hookrule.Allocate(all, place("c", "x"), 2, true); !is.Full || is.OK || len(got) != len(all) {
			t.Errorf("got %+v and %d places", is, len(got))
		}
	})
}

// TestAllocateAlways makes Clusters come and go at random. At no time do more than the limit have places of one value,
// each has one at most, and one is refused only if all are taken.
func TestAllocateAlways(t *testing.T) {
	const limit = 3
	random := rand.New(rand.NewPCG(1, 2))
	var places []hookrule.Place
	for range 20_000 {
		name, per := fmt.Sprint("c", random.IntN(12)), fmt.Sprint("p", random.IntN(2))
		cluster := types.NamespacedName{Namespace: "n", Name: name}
		has := func(p hookrule.Place) bool { return p.Name == name }
		if random.IntN(3) == 0 {
			if places = hookrule.Free(places, cluster); slices.ContainsFunc(places, has) {
				t.Fatalf("%s still has a place", name)
			}
			continue
		}
		had, taken := slices.ContainsFunc(places, has), map[string]int{}
		for _, p := range places {
			taken[p.Per]++
		}
		next, is := hookrule.Allocate(places, place(name, per), limit, false)
		if is.OK != (had || taken[per] < limit) {
			t.Fatalf("%s of %s: got %+v with %v", name, per, is, taken)
		}
		again, same := hookrule.Allocate(next, place(name, per), limit, false)
		if same.OK != is.OK || !slices.Equal(again, next) {
			t.Fatalf("asking again changes %v to %v", next, again)
		}
		counted, seen := map[string]int{}, map[string]bool{}
		for _, p := range next {
			if counted[p.Per]++; counted[p.Per] > limit || seen[p.Name] {
				t.Fatalf("too many places, or two of one Cluster: %v", next)
			}
			seen[p.Name] = true
		}
		places = next
	}
}

func TestOver(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, cluster string
		over            bool
	}{
		"Gone":    {"the Cluster is gone", "", true},
		"Same":    {"the upgrade goes on", `{"metadata":{"uid":"1"},"spec":{"topology":{"version":"v1"}}}`, false},
		"Version": {"the Cluster is to have another version", `{"metadata":{"uid":"1"},"spec":{"topology":{"version":"v2"}}}`, true},
		"Anew":    {"it is another Cluster with this name", `{"metadata":{"uid":"2"},"spec":{"topology":{"version":"v1"}}}`, true},
	} {
		p := place("a", "x")
		var cluster []byte
		if tc.cluster != "" {
			cluster = []byte(tc.cluster)
		}
		if got := hookrule.Over(&p, cluster); got != tc.over {
			t.Errorf("%s: %s: got %t", name, tc.reason, got)
		}
	}
	p := place("a", "x")
	if p.TopologyVersion = ""; hookrule.Over(&p, []byte(`{"metadata":{"uid":"1"},"spec":{"topology":{"version":"v2"}}}`)) {
		t.Error("without a version, only the end of the Cluster frees a place")
	}
}
