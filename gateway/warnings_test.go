// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"slices"
	"testing"
)

func TestWarningsAreSortedUniqueAndBounded(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 10, 11: 11, 12: 11, 30: 11} {
		var w warnings
		for i := n - 1; i >= 0; i-- {
			w.add(fmt.Sprintf("handler %02d", i))
			w.add(fmt.Sprintf("handler %02d", i))
		}
		got := w.values()
		if len(got) != want || !slices.IsSorted(got[:min(n, 10)]) {
			t.Errorf("of %d warnings, the caller gets %q", n, got)
		}
		if again := w.values(); !slices.Equal(got, again) {
			t.Errorf("the second time, the caller gets %q", again)
		}
		if n > 10 {
			if last := fmt.Sprintf(`299 - "and %d more handlers implement deprecated hooks"`, n-10); got[10] != last {
				t.Errorf("got %s, want %s", got[10], last)
			}
			if got[9] != `299 - "handler 09"` {
				t.Errorf("the tenth is %s", got[9])
			}
		}
	}
	var none warnings
	if none.values() != nil {
		t.Error("without warnings there is no header")
	}
}
