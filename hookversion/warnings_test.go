// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
)

func TestWarningsAreSortedDistinctAndBounded(t *testing.T) {
	for _, n := range []int{0, 1, maxWarnings, maxWarnings + 1, 3 * maxWarnings} {
		var w Warnings
		var want []string
		for i := n; i > 0; i-- {
			w.add(fmt.Sprintf("%02d \"quoted\"", i))
			w.add(fmt.Sprintf("%02d \"quoted\"", i))
		}
		for i := 1; i <= min(n, maxWarnings); i++ {
			want = append(want, fmt.Sprintf(`299 - "%02d \"quoted\""`, i))
		}
		if n > maxWarnings {
			want = append(want, fmt.Sprintf(`299 - "and %d more handlers implement deprecated hooks"`, n-maxWarnings))
		}
		if diff := cmp.Diff(want, w.Values()); diff != "" {
			t.Errorf("%d: -want +got:\n%s", n, diff)
		}
		if diff := cmp.Diff(want, w.Values()); diff != "" {
			t.Errorf("%d, the second time: -want +got:\n%s", n, diff)
		}
	}
}

func TestCurrentVersionsAreNotWarnedAbout(t *testing.T) {
	var w Warnings
	for _, h := range catalog.New().Hooks() {
		if w.AddCaller(h) || w.AddHandler(h, "handler") {
			t.Errorf("%s is deprecated", h)
		}
	}
	if got := w.Values(); got != nil {
		t.Errorf("got %q", got)
	}
}
