// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"testing"

	"github.com/hookgate/hookgate/internal/base/status"
)

func TestDifference(t *testing.T) {
	for want, d := range map[string]status.RolloutDifference{
		`Cluster ns/c spec /a 1 → 2`:       {Object: "Cluster ns/c spec", Path: "/a", Stable: "1", Candidate: "2"},
		`/a 1 → (none)`:                    {Path: "/a", Stable: "1"},
		`(none) → v7 has no handler`:       {Candidate: "v7 has no handler"},
		`proves nothing: Failure: no file`: {Stable: "Failure: no file", Candidate: "Failure: no file"},
	} {
		if got := Difference(&d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
