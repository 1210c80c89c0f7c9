// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func waitFor(cluster, handler string) Wait {
	return Wait{Namespace: "team", Cluster: cluster, Hook: "BeforeClusterUpgrade", Handler: handler}
}

func clusters(h *Holds, at time.Time) []string {
	names := []string{}
	holds, _ := h.List(at)
	for _, hold := range holds {
		names = append(names, hold.Cluster)
	}
	return names
}

func TestHoldsAreListedUntilTheyEnd(t *testing.T) {
	var h Holds
	h.Release(waitFor("a", "gate.x"), now) // of nothing
	hold := func(cluster string, after time.Duration) {
		h.Hold(Hold{Wait: waitFor(cluster, "gate.x"), Last: now.Add(after), RetryAfter: time.Minute})
	}
	hold("b", time.Second)
	hold("a", 2*time.Second)
	hold("b", 3*time.Second) // asked again
	if diff := cmp.Diff([]string{"b", "a"}, clusters(&h, now)); diff != "" {
		t.Errorf("oldest first: -want +got\n%s", diff)
	}
	if holds, _ := h.List(now); !holds[0].Since.Equal(now.Add(time.Second)) || !holds[0].Last.Equal(now.Add(3*time.Second)) {
		t.Errorf("b holds since %s, asked last at %s", holds[0].Since, holds[0].Last)
	}
	if !h.Of("gate.x") || h.Of("other.x") {
		t.Error("gate.x holds, and other.x does not")
	}
	h.Release(waitFor("b", "gate.x"), now)
	h.Release(waitFor("b", "gate.x"), now)
	if diff := cmp.Diff([]string{"a"}, clusters(&h, now.Add(2*time.Second+time.Minute+idle))); diff != "" {
		t.Errorf("at the last moment: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, clusters(&h, now.Add(2*time.Second+time.Minute+idle+1))); diff != "" {
		t.Errorf("after it: -want +got\n%s", diff)
	}
	if h.Of("gate.x") {
		t.Error("gate.x still holds")
	}
}

// TestReleases checks that what let Clusters go on is kept, whether they were held or not, and how much of it.
func TestReleases(t *testing.T) {
	var h Holds
	if n := len(h.Released()); n != 0 {
		t.Errorf("%d releases at first", n)
	}
	h.Hold(Hold{Wait: waitFor("a", "gate.x"), Last: now})
	h.Release(waitFor("a", "gate.x"), now.Add(time.Second))
	h.Release(waitFor("b", "gate.x"), now)
	h.Release(waitFor("b", "gate.x"), now.Add(time.Minute))
	want := map[Wait]time.Time{waitFor("a", "gate.x"): now.Add(time.Second), waitFor("b", "gate.x"): now.Add(time.Minute)}
	if diff := cmp.Diff(want, h.Released()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for n := range 2 * MaxHolds {
		h.Release(waitFor(strconv.Itoa(n), "gate.x"), now)
	}
	all := h.Released()
	if _, last := all[waitFor(strconv.Itoa(2*MaxHolds-1), "gate.x")]; len(all) > MaxHolds || len(all) < MaxHolds/2 || !last {
		t.Errorf("%d of %d releases are kept, the last one: %t", len(all), MaxHolds, last)
	}
}

func TestHoldThatHadEndedBeginsAnew(t *testing.T) {
	var h Holds
	later := now.Add(idle + 1)
	h.Hold(Hold{Wait: waitFor("a", "gate.x"), Last: now})
	h.Hold(Hold{Wait: waitFor("a", "gate.x"), Last: later})
	if holds, _ := h.List(later); len(holds) != 1 || !holds[0].Since.Equal(later) {
		t.Errorf("got %+v, want one since %s", holds, later)
	}
}

func TestHoldsAreBounded(t *testing.T) {
	var h Holds
	for n := range MaxHolds + 5 {
		h.Hold(Hold{Wait: waitFor(strconv.Itoa(n), "gate.x"), Last: now, Message: strings.Repeat("x", 2*limits.FailureBytes)})
	}
	holds, missed := h.List(now)
	if len(holds) != MaxHolds || missed != 5 {
		t.Errorf("%d holds, and no room for %d; want %d and 5", len(holds), missed, MaxHolds)
	}
	if n := len(holds[0].Message); n > limits.FailureBytes {
		t.Errorf("a message has %d bytes, want at most %d", n, limits.FailureBytes)
	}
	later := now.Add(idle + 1)
	h.Hold(Hold{Wait: waitFor("later", "gate.x"), Last: later})
	if diff := cmp.Diff([]string{"later"}, clusters(&h, later)); diff != "" {
		t.Errorf("those that have ended make room: -want +got\n%s", diff)
	}
}

// BenchmarkHoldsBeyondTheLimit is what a call pays that waits when 10,000 others do.
func BenchmarkHoldsBeyondTheLimit(b *testing.B) {
	var h Holds
	for i := range MaxHolds {
		h.Hold(Hold{Wait: waitFor(strconv.Itoa(i), "gate.x"), Last: now, RetryAfter: time.Hour})
	}
	beyond := Hold{Wait: waitFor("beyond", "gate.x"), Last: now}
	b.ReportAllocs()
	for b.Loop() {
		h.Hold(beyond)
	}
}

// Parts of a Cluster wait and go on by themselves, and count as one Cluster.
func TestHoldsOfPartsOfACluster(t *testing.T) {
	var h Holds
	part := func(object string) Wait {
		w := waitFor("a", "chain")
		w.Object = object
		return w
	}
	h.Hold(Hold{Wait: part("MachineDeployment one"), Last: now})
	h.Hold(Hold{Wait: part("MachineDeployment two"), Last: now})
	of := Wait{Hook: "BeforeClusterUpgrade", Handler: "chain"}
	if held := h.Held(now)[of]; held.Clusters != 1 {
		t.Errorf("%d Clusters wait, want 1", held.Clusters)
	}
	h.Release(part("MachineDeployment two"), now)
	if holds, _ := h.List(now); len(holds) != 1 || holds[0].Object != "MachineDeployment one" {
		t.Errorf("got %+v, want the other part", holds)
	}
}

// A message that changes at each of five calls is reported, and one that changes at every other call a little later:
// until it settles. Progress, errors, other answers and other Clusters are no changes.
func TestUnsteadyMessages(t *testing.T) {
	numbered := func(text string) func(i int) Hold {
		return func(i int) Hold { return Hold{Message: strings.ReplaceAll(text, "I", strconv.Itoa(i))} }
	}
	for name, tc := range map[string]struct {
		hold     func(i int) Hold
		changes  int // of 24 answers
		since    int // the answer that is reported first; 0 for none
		maskable bool
	}{
		"steady":         {numbered("waits"), 0, 0, false},
		"time":           {numbered("since 2026-11-28T22:22:0IZ"), 23, 6, true},
		"counter":        {numbered("I volumes"), 23, 6, false},
		"progress":       {numbered("I of 30 done"), 0, 0, false},
		"retry after":    {func(i int) Hold { return Hold{Message: "waits", RetryAfter: time.Duration(i) * time.Second} }, 0, 0, false},
		"failure":        {func(i int) Hold { return Hold{Kind: KindFailure, Message: strconv.Itoa(i) + "s"} }, 23, 6, true},
		"error":          {func(i int) Hold { return Hold{Kind: "Timeout", Message: strconv.Itoa(i)} }, 0, 0, false},
		"twice the same": {func(i int) Hold { return Hold{Message: strconv.Itoa(i/2) + "s"} }, 11, 19, true},
		"another answer": {func(i int) Hold { return Hold{Kind: []string{"", KindFailure}[i%2], Message: strconv.Itoa(i)} }, 0, 0, false},
		"now and then":   {func(i int) Hold { return Hold{Message: strconv.Itoa(i / 4)} }, 5, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var h Holds
			changes, since, maskable := 0, 0, false
			for i := range 24 {
				hold := tc.hold(i)
				hold.Wait, hold.Last = waitFor("a", "gate.x"), now.Add(time.Duration(i)*time.Second)
				if h.Hold(hold) {
					changes++
				}
				h.Hold(Hold{Wait: waitFor("b", "gate.x"), Message: "waits", Last: hold.Last})
				found, ok := h.Unsteady("gate.x")
				if ok && since == 0 {
					since, maskable = i+1, found.Maskable
				}
				if _, other := h.Unsteady("gate.y"); other || ok && found.Cluster != "a" {
					t.Errorf("reports %+v", found)
				}
			}
			if changes != tc.changes || since != tc.since || maskable != tc.maskable {
				t.Errorf("got %d changes, reported from %d on, maskable: %t; want %d, %d, %t", changes, since, maskable, tc.changes, tc.since, tc.maskable)
			}
			for range 4 * limits.UnsteadyMessages {
				h.Hold(Hold{Wait: waitFor("a", "gate.x"), Message: "waits", Last: now.Add(time.Minute)})
			}
			if found, ok := h.Unsteady("gate.x"); ok {
				t.Errorf("reports a message that has settled: %+v", found)
			}
			h.Release(waitFor("a", "gate.x"), now)
			h.Release(waitFor("b", "gate.x"), now)
			if len(h.unsteady) > 0 {
				t.Errorf("keeps %v", h.unsteady)
			}
		})
	}
}
