// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime"
	"testing"
)

// TestReturner checks that memory goes back when a burst is over, not while it lasts, and not again without another one.
func TestReturner(t *testing.T) {
	before, allocated := used()
	r := Returner{floor: before, allocated: allocated}
	burst := func() {
		for range 24 {
			runtime.KeepAlive(make([]byte, 16<<20))
		}
		runtime.KeepAlive(make([]byte, 128<<20)) // garbage that no collection has seen
	}
	burst()
	if r.look() {
		t.Error("memory is returned although much was allocated since the last look")
	}
	during, _ := used()
	if !r.look() {
		t.Fatalf("no memory is returned of %d bytes", during)
	}
	if after, _ := used(); after > before+maxExcess/2 {
		t.Errorf("%d bytes are held after the burst, %d during it, and %d before", after, during, before)
	}
	if r.look() {
		t.Error("memory is returned again, without a burst in between")
	}
	burst()
	if r.look() || !r.look() {
		t.Error("memory of the second burst is not returned after it")
	}
}
