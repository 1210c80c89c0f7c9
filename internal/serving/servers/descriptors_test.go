// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import "testing"

// The connections of an address have a part of the descriptors, and no more than their own limit.
func TestWithin(t *testing.T) {
	for _, tc := range []struct {
		descriptors uint64
		want        int
	}{{0, 0}, {256, 64}, {4000, 1000}, {4004, 1000}, {unlimited, 1000}} {
		if got := within(tc.descriptors, 4, 1000); got != tc.want {
			t.Errorf("%d of %d descriptors, want %d", got, tc.descriptors, tc.want)
		}
	}
	if descriptors() == 0 {
		t.Error("the process may open no file")
	}
}
