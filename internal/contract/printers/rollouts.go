// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/internal/base/status"
)

// RolloutMessage returns what keeps an ExtensionRollout or its Clusters from moving on; nothing if all is well.
func RolloutMessage(r *status.Rollout) string {
	var parts []string
	if !r.Ready {
		parts = append(parts, r.Message)
	}
	if r.Aborted != "" {
		parts = append(parts, "aborted, no more Clusters move: "+r.Aborted)
	}
	if r.Paused {
		parts = append(parts, "paused, no more Clusters move")
	}
	if r.Variables != nil {
		parts = append(parts, "the candidate cannot be promoted, because variables differ")
	}
	return strings.Join(parts, "; ")
}

// Difference returns a value that differs on one line: where, and the values of stable and candidate; or why answers
// prove nothing.
func Difference(d *status.RolloutDifference) string {
	where := strings.Join(strings.Fields(d.Object+" "+d.Path), " ")
	if where == "" && d.Stable != "" && d.Stable == d.Candidate {
		return "proves nothing: " + d.Stable
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s → %s", where, cmp.Or(d.Stable, "(none)"), cmp.Or(d.Candidate, "(none)")))
}

// MachinesOf returns what differences do to Machines, each fact once.
func MachinesOf(differences []status.RolloutDifference) (all []string) {
	seen := map[string]bool{}
	for i := range differences {
		if says := differences[i].Machines; says != "" && !seen[says] {
			seen[says] = true
			all = append(all, says)
		}
	}
	return all
}

// memberText says what an extension is to an ExtensionRollout.
func memberText(m *status.RolloutMember) string {
	switch {
	case m == nil:
		return ""
	case m.As == "":
		return fmt.Sprintf("not called, because of ExtensionRollout %s", m.Name)
	}
	return fmt.Sprintf("%s of ExtensionRollout %s", m.As, m.Name)
}
