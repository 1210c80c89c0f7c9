// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Rollouts writes a row for each ExtensionRollout of a gateway. If wide, messages are those of all.
func Rollouts(w io.Writer, g *status.Gateway, wide bool) error {
	t := table.New(w)
	t.Columns("NAME", "STABLE", "CANDIDATE", "READY", "EQUAL", "DIFFERENT", "MOVED", "FAILING", "MESSAGE")
	t.Optional("STABLE", "CANDIDATE", "EQUAL")
	for i := range g.Rollouts {
		r := &g.Rollouts[i]
		message := RolloutMessage(r)
		if wide {
			message = cmp.Or(message, r.Message)
		}
		t.Row(r.Name, r.Stable, r.Candidate, Condition(r.Ready), strconv.Itoa(r.Equal), strconv.Itoa(r.Different),
			strconv.Itoa(r.Moved), strconv.Itoa(r.Failing), message)
	}
	return t.Flush()
}

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
		parts = append(parts, "variables differ, which keeps it from being promoted")
	}
	return strings.Join(parts, "; ")
}

// Rollout describes the first rollout of g, which is all that g has: its counts, and what differs for each Cluster.
func Rollout(w io.Writer, g *status.Gateway) error {
	r := &g.Rollouts[0]
	t := table.New(w)
	t.Row("Name:", r.Name)
	t.Row("Stable:", r.Stable)
	t.Row("Candidate:", cmp.Or(r.Candidate, "none, so that no Cluster moves"))
	t.Row("Ready:", Condition(r.Ready)+", "+r.Reason)
	t.Row("Message:", cmp.Or(RolloutMessage(r), r.Message))
	if r.Candidate != "" {
		t.Row("Clusters:", fmt.Sprintf("%d equal, %d different, %d moved", r.Equal, r.Different, r.Moved))
		if r.Failing > 0 {
			t.Row("Failing:", fmt.Sprintf("the last call of %s failed for %s", r.Candidate, text.Plural(r.Failing, "Cluster")))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Handlers) > 0 {
		if err := handlersOf(w, r.Handlers); err != nil {
			return err
		}
	}
	if r.Variables != nil {
		const name = "Calls about no Cluster, such as those of DiscoverVariables"
		if err := rolloutCluster(w, name, r.Variables, g.Now); err != nil {
			return err
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if err := rolloutCluster(w, "Cluster "+c.Namespace+"/"+c.Cluster, c, g.Now); err != nil {
			return err
		}
	}
	if r.MissedClusters > 0 {
		_, err := fmt.Fprintf(w, "\nand %d more Clusters, which the gateway does not list\n", r.MissedClusters)
		if err != nil {
			return err
		}
	}
	if len(g.Holds) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return Holds(w, g)
}

// rolloutCluster writes what differs for a Cluster, and what that does to its Machines.
func rolloutCluster(w io.Writer, name string, c *status.RolloutCluster, now time.Time) error {
	t := table.New(w)
	t.Section(name+":", strings.ToLower(c.State)+" for "+age(&c.Since, now)+says(c.Message))
	if c.Failure != "" {
		t.Row("  Fails:", c.Failure)
	}
	for _, machines := range MachinesOf(c.Differences) {
		t.Row("  Machines:", machines)
	}
	for i := range c.Differences {
		d := &c.Differences[i]
		t.Row("  "+d.Handler+":", Difference(d))
	}
	if c.OmittedDifferences > 0 {
		t.Row("", fmt.Sprintf("and %d more", c.OmittedDifferences))
	}
	return t.Flush()
}

func says(message string) string {
	if message == "" {
		return ""
	}
	return ", " + message
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
