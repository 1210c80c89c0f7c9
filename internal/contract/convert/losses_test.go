// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLossesAreNewOnce(t *testing.T) {
	var told []string
	l := NewLosses(func(config string) { told = append(told, config) })
	for i, step := range []struct {
		config, handler string
		lost, want      []string
	}{
		{"acme", "before-create", nil, nil},
		{"acme", "before-create", []string{"cluster.b", "cluster.a", "cluster.b"}, []string{"cluster.b", "cluster.a"}},
		{"acme", "before-create", []string{"cluster.a"}, nil},
		{"acme", "before-delete", []string{"cluster.a"}, []string{"cluster.a"}},
		{"acme", "before-create", []string{"cluster.a", "cluster.c"}, []string{"cluster.c"}},
		{"other", "before-create", []string{"cluster.a"}, []string{"cluster.a"}},
	} {
		if diff := cmp.Diff(step.want, l.Record(step.config, step.handler, step.lost)); diff != "" {
			t.Errorf("step %d: new paths (-want +got):\n%s", i, diff)
		}
	}
	want := map[string][]string{"before-create": {"cluster.a", "cluster.b", "cluster.c"},
		"before-delete": {"cluster.a"}}
	if diff := cmp.Diff(want, l.Of("acme")); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme", "acme", "acme", "other"}, told); diff != "" {
		t.Errorf("onNew (-want +got):\n%s", diff)
	}
	l.Forget("acme")
	if left := l.Of("acme"); len(left) != 0 {
		t.Errorf("after Forget: %v", left)
	}
	told = nil
	l.Notify(func(config string) { told = append(told, "now "+config) })
	if got := l.Record("acme", "before-create", []string{"cluster.a"}); len(got) != 1 {
		t.Errorf("after Forget, %v is new", got)
	}
	if diff := cmp.Diff([]string{"now acme"}, told); diff != "" {
		t.Errorf("after Notify (-want +got):\n%s", diff)
	}
}

func TestLossesAreBounded(t *testing.T) {
	l := NewLosses(nil)
	more := 0
	for i := range 10 * maxLostPaths {
		for _, path := range l.Record("acme", "h", []string{fmt.Sprintf("cluster.x%04d", i)}) {
			if path == MorePaths {
				more++
			}
		}
	}
	if n := len(l.Of("acme")["h"]); n != maxLostPaths+1 || more != 1 {
		t.Errorf("%d paths are remembered, and %q was new %d times; want %d and 1", n, MorePaths, more, maxLostPaths+1)
	}
}

// Of concurrent calls with the same loss, exactly one reports it as new.
func TestLossesAtTheSameTime(t *testing.T) {
	l := NewLosses(nil)
	var wg sync.WaitGroup
	told := make(chan string, 800)
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				for _, path := range l.Record("acme", "h", []string{fmt.Sprintf("cluster.x%04d", i)}) {
					told <- path
				}
			}
		})
	}
	wg.Wait()
	close(told)
	n := 0
	for range told {
		n++
	}
	if n != 50 {
		t.Errorf("%d paths were new, want 50", n)
	}
}

// The limit holds for the losses of one call and of many calls.
func TestLossesAtTheLimit(t *testing.T) {
	paths := func(from, to int) (all []string) {
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf("cluster.x%04d", i))
		}
		return all
	}
	tests := map[string]struct {
		calls [][]string
		fresh []int // how many paths are new in each call
		more  bool
	}{
		"Exactly":    {[][]string{paths(0, maxLostPaths)}, []int{maxLostPaths}, false},
		"OneBeyond":  {[][]string{paths(0, maxLostPaths+1)}, []int{maxLostPaths + 1}, true},
		"ManyBeyond": {[][]string{paths(0, 3*maxLostPaths)}, []int{maxLostPaths + 1}, true},
		"ExactlyInTwo": {[][]string{paths(0, maxLostPaths-1), paths(maxLostPaths-1, maxLostPaths)},
			[]int{maxLostPaths - 1, 1}, false},
		"OneBeyondInTwo": {[][]string{paths(0, maxLostPaths), paths(maxLostPaths, maxLostPaths+1)},
			[]int{maxLostPaths, 1}, true},
		"BeyondAgain": {[][]string{paths(0, maxLostPaths+1), paths(maxLostPaths, maxLostPaths+2)},
			[]int{maxLostPaths + 1, 0}, true},
		"KnownAtTheLimit": {[][]string{paths(0, maxLostPaths), paths(0, maxLostPaths)}, []int{maxLostPaths, 0},
			false},
		"KnownBeyondAgain": {[][]string{paths(0, maxLostPaths+1), paths(0, maxLostPaths+1)},
			[]int{maxLostPaths + 1, 0}, true},
		"LastOneAndOneBeyond": {[][]string{paths(0, maxLostPaths-1), paths(maxLostPaths-1, maxLostPaths+1)},
			[]int{maxLostPaths - 1, 2}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := NewLosses(nil)
			for i, lost := range tc.calls {
				kept := slices.Clone(lost)
				if fresh := l.Record("acme", "h", lost); len(fresh) != tc.fresh[i] {
					t.Errorf("call %d: %d paths are new, want %d", i, len(fresh), tc.fresh[i])
				}
				if !slices.Equal(kept, lost) {
					t.Errorf("call %d: the paths were changed", i)
				}
			}
			known := l.Of("acme")["h"]
			if slices.Contains(known, MorePaths) != tc.more || !slices.IsSorted(known) || len(known) > maxLostPaths+1 {
				t.Errorf("%d paths are known, %q among them: %t, want %t", len(known), MorePaths, !tc.more, tc.more)
			}
		})
	}
}

// The result of Of does not change with later losses, and changing it does not change the record.
func TestLossesAreCopied(t *testing.T) {
	l := NewLosses(nil)
	l.Record("acme", "h", []string{"cluster.b"})
	before := l.Of("acme")
	l.Record("acme", "h", []string{"cluster.a"})
	if diff := cmp.Diff(map[string][]string{"h": {"cluster.b"}}, before); diff != "" {
		t.Errorf("the earlier answer changed (-want +got):\n%s", diff)
	}
	delete(l.Of("acme"), "h")
	if diff := cmp.Diff(map[string][]string{"h": {"cluster.a", "cluster.b"}}, l.Of("acme")); diff != "" {
		t.Errorf("what is remembered changed (-want +got):\n%s", diff)
	}
}
