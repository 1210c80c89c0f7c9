// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
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
	want := map[string][]string{"before-create": {"cluster.a", "cluster.b", "cluster.c"}, "before-delete": {"cluster.a"}}
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

// TestLossesAtTheSameTime holds that of many calls that lose the same, one tells.
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
