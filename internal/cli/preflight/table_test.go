// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"
)

// The table lists so many lost members, and counts the rest.
func TestTableListsSomeLostMembers(t *testing.T) {
	for lost, want := range map[int]string{maxLost: "", maxLost + 1: "and 1 more; -o json has them all", maxLost + 5: "and 5 more; "} {
		r := Report{Findings: []Finding{{Level: Degrade, Rule: ruleMembersLost, Lost: strings.Fields(strings.Repeat("spec.x ", lost))}}}
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		listed := strings.Count(b.String(), "spec.x")
		if listed != maxLost || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "more;") != (want != "") {
			t.Errorf("%d members are lost, and %d listed:\n%s", lost, listed, b.String())
		}
	}
}
