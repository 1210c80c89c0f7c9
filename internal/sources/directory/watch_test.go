// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// A watch names the files that have changed, and none where any may have.
func TestWatchNamesWhatChanged(t *testing.T) {
	w := &watch{dir: "d"}
	take := func() string {
		names := w.take()
		if names == nil {
			return "all"
		}
		return fmt.Sprint(slices.Sorted(maps.Keys(names)))
	}
	if got := take(); got != "all" {
		t.Errorf("before the first reading: %s", got)
	}
	if got := take(); got != "[]" {
		t.Errorf("without an event: %s", got)
	}
	for _, path := range []string{"d/b.yaml", "d/a.yaml", "d/b.yaml"} {
		w.note(path)
	}
	if got := take(); got != "[a.yaml b.yaml]" {
		t.Errorf("after events of two files: %s", got)
	}
	w.note("d/a.yaml")
	w.note("d")
	w.note("d/b.yaml")
	if got := take(); got != "all" {
		t.Errorf("after an event of the directory: %s", got)
	}
	for i := range maxNames {
		w.note(fmt.Sprintf("d/%d.yaml", i))
	}
	if got := len(w.names); got != maxNames {
		t.Errorf("%d names are kept, want %d", got, maxNames)
	}
	if w.note("d/x.yaml"); take() != "all" {
		t.Error("one name more is not all files")
	}
}
